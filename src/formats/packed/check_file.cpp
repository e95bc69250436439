// SPDX-License-Identifier: Apache-2.0
// Reads a packed file that was just written, some tensors at a time, and compares.
#include <cstring>

#include "base/format.h"
#include "formats/onnx/file.h"
#include "formats/packed/file.h"

namespace quench::packed {
namespace {

constexpr std::uint64_t kGroup = std::uint64_t{64} << 20;

bool same(Bytes a, Bytes b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

/// Compares tensors with what the file says of where they lie.
class Comparison {
 public:
  Comparison(std::span<const Tensor> parts, const Head& head, Bytes file)
      : parts_(parts), head_(head), file_(file), taken_(parts.size(), 0) {}

  void run() {
    if (head_.tensors.size() != parts_.size()) differ(0);
    for_groups(parts_, kGroup, [&](std::size_t begin, std::size_t end) { group(begin, end); });
  }

 private:
  [[noreturn]] static void differ(std::size_t tensor) {
    fail(ErrorKind::Internal, "the file just written differs in tensor {}", tensor);
  }

  void group(std::size_t begin, std::size_t end) {
    const std::vector<Buffer> buffers = unpack(file_, head_, begin, end);
    for (std::size_t i = begin; i < end; ++i) {
      const PackedTensor& tensor = head_.tensors[i];
      const Bytes bytes = parts_[i].bytes();
      const auto other = static_cast<std::size_t>(tensor.other);
      bool right = false;
      if (tensor.storage == Storage::Same) {
        right = same(parts_[other].bytes(), bytes);
      } else if (tensor.storage == Storage::Pooled) {
        right = same(parts_[other].bytes().subspan(taken_[other], bytes.size()), bytes);
        taken_[other] += bytes.size();
      } else {
        right = same(buffers[i - begin].bytes, bytes);
      }
      if (!right) differ(i);
      parts_[i].drop();
    }
  }

  std::span<const Tensor> parts_;
  const Head& head_;
  Bytes file_;
  std::vector<std::size_t> taken_;  ///< of pools
};

}  // namespace

void for_groups(std::span<const Tensor> tensors, std::uint64_t bytes,
                const std::function<void(std::size_t begin, std::size_t end)>& work) {
  std::size_t begin = 0;
  std::uint64_t size = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::uint64_t next = tensors[i].num_bytes();
    if (i > begin && size + next > bytes) {
      work(begin, i);
      begin = i;
      size = 0;
    }
    size += next;
  }
  if (begin < tensors.size()) work(begin, tensors.size());
}

void expect_same(const Model& model, std::span<const Tensor> parts, Bytes file) {
  const Head head = read_head(file);
  Comparison(parts, head, file).run();
  std::vector<onnx::Stored> stored;
  for (const Tensor& part : parts) stored.push_back({part.bytes(), part.owner()});
  onnx::expect_same(model, onnx::from_shell(head.shell, std::move(stored)));
}

}  // namespace quench::packed
