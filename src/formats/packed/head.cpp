// SPDX-License-Identifier: Apache-2.0
// Reads what a packed file says of itself. The file is hostile: every number is bounded first.
#include <zlib.h>

#include <cstring>

#include "base/format.h"
#include "formats/packed/compress.h"
#include "formats/packed/file.h"

namespace quench::packed {
namespace {

constexpr std::uint64_t kMostGrowth = 1024;
constexpr std::uint64_t kSmallSize = std::uint64_t{16} << 20;

struct Header {
  std::uint64_t stored = 0;  ///< bytes of the compressed head
  std::uint64_t raw = 0;     ///< and of the head itself
  std::uint32_t checksum = 0;
};

Header read_header(Bytes file) {
  if (file.size() < kHeaderBytes) {
    fail_damaged(format("it has {} bytes, less than its header takes", file.size()));
  }
  ByteReader in(file.subspan(kMagic.size(), kHeaderBytes - kMagic.size()));
  const std::uint32_t version = in.u32();
  if (version != kVersion) {
    fail(ErrorKind::Unsupported,
         "the packed file has version {}, but this program reads version {}; use the program that "
         "wrote it, or pack the model again",
         version, kVersion);
  }
  if (in.u32() != 0) fail_damaged("its reserved bytes are in use");
  const std::uint64_t size = in.u64();
  if (size != file.size()) {
    fail_damaged(format("it should have {} bytes, but has {}", size, file.size()));
  }
  Header header;
  header.stored = in.u64();
  header.raw = in.u64();
  header.checksum = in.u32();
  if (header.stored > file.size() - kHeaderBytes || header.raw > most_bytes(file.size())) {
    fail_damaged("its head has an impossible size");
  }
  return header;
}

Layout read_layout(ByteReader& in, std::uint64_t size) {
  Layout layout;
  layout.bits = in.u8();
  layout.width = in.u8();
  const std::uint8_t flags = in.u8();
  layout.flip = (flags & 1) != 0;
  layout.rotate = (flags & 2) != 0;
  const bool lone = layout.width == 1 &&
                    (layout.bits == 2 || layout.bits == 4 || layout.bits == 8 || layout.bits == 16);
  const bool planes =
      layout.bits == 8 && (layout.width == 2 || layout.width == 4 || layout.width == 8);
  const auto unit = static_cast<std::uint64_t>(layout.bits == 16 ? 2 : layout.width);
  if ((!lone && !planes) || (planes && layout.flip) || flags > 3 || size % unit != 0) {
    fail_damaged("a tensor has an impossible layout");
  }
  return layout;
}

/// Reads tensors one after the other; chunks follow each other in the file.
class TensorReader {
 public:
  TensorReader(ByteReader& in, std::uint64_t offset, std::uint64_t end)
      : in_(in), offset_(offset), end_(end), left_(most_bytes(end)) {}

  PackedTensor tensor(std::span<const PackedTensor> before) {
    PackedTensor result;
    result.size = in_.varint(left_, "the size of a tensor");
    const std::uint8_t storage = in_.u8();
    if (storage > static_cast<std::uint8_t>(Storage::Pooled))
      fail_damaged("a storage is not known");
    result.storage = static_cast<Storage>(storage);
    if (result.storage == Storage::Same) {
      result.other = in_.varint();
      if (result.other >= before.size() || before[result.other].size != result.size) {
        fail_damaged("a tensor refers to another that does not fit");
      }
      return result;
    }
    left_ -= result.size;
    if (result.storage == Storage::Pooled) result.other = in_.varint();
    if (result.storage == Storage::Streams) streams(result);
    return result;
  }

  bool at_end() const noexcept { return offset_ == end_; }

 private:
  void streams(PackedTensor& tensor) {
    tensor.layout = read_layout(in_, tensor.size);
    const StreamInfo info{.count = tensor.num_symbols(), .bits = tensor.layout.bits};
    const auto codings = all_codings();
    for (const Lane& lane : lanes_of(tensor.layout)) {
      PackedStream& stream = tensor.streams.emplace_back();
      stream.lane = lane;
      stream.coding = in_.u8();
      if (stream.coding >= codings.size()) fail_damaged("a coding is not known");
      stream.coder = codings[stream.coding].read(in_, info);
      chunks(stream, info.count);
    }
  }

  void chunks(PackedStream& stream, std::uint64_t count) {
    const std::uint64_t number = num_chunks(*stream.coder, count);
    for (std::uint64_t i = 0; i < number; ++i) {
      const std::uint64_t size = in_.varint(end_ - offset_, "the size of a chunk");
      stream.chunks.push_back({.offset = offset_, .size = size, .checksum = in_.u32()});
      offset_ += size;
    }
  }

  ByteReader& in_;
  std::uint64_t offset_;
  std::uint64_t end_;
  std::uint64_t left_;  ///< bytes that tensors may still take
};

/// Pools must hold what their tensors take.
void check_pools(std::span<const PackedTensor> tensors) {
  std::vector<std::uint64_t> taken(tensors.size(), 0);
  for (const PackedTensor& tensor : tensors) {
    if (tensor.storage != Storage::Pooled) continue;
    const bool there = tensor.other < tensors.size() &&
                       tensors[tensor.other].storage == Storage::Streams &&
                       tensor.size <= tensors[tensor.other].size - taken[tensor.other];
    if (!there) fail_damaged("a tensor lies outside its pool");
    taken[tensor.other] += tensor.size;
  }
}

void read_tensors(Head& head, ByteReader& in, std::uint64_t offset, std::uint64_t end) {
  const std::uint64_t count = in.varint(in.left(), "the number of tensors");
  TensorReader reader(in, offset, end);
  for (std::uint64_t i = 0; i < count; ++i) head.tensors.push_back(reader.tensor(head.tensors));
  if (!reader.at_end()) fail_damaged("bytes are left behind its last tensor");
  check_pools(head.tensors);
  for (const PackedTensor& tensor : head.tensors) {
    const bool inside = tensor.storage == Storage::Inline;
    head.inside.push_back(inside ? in.bytes(tensor.size) : Bytes());
  }
  if (in.left() != 0) fail_damaged("bytes are left behind its head");
}

}  // namespace

std::uint64_t most_bytes(std::uint64_t file_size) noexcept {
  return kSmallSize +
         (file_size < UINT64_MAX / (2 * kMostGrowth) ? kMostGrowth * file_size : UINT64_MAX / 2);
}

std::uint32_t checksum(Bytes bytes, std::uint32_t before) noexcept {
  return static_cast<std::uint32_t>(
      ::crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

Head read_head(Bytes file) {
  const Header header = read_header(file);
  const Bytes stored = file.subspan(kHeaderBytes, static_cast<std::size_t>(header.stored));
  const std::uint32_t sum = checksum(stored, checksum(file.first(kHeaderBytes - 4)));
  if (sum != header.checksum) fail_damaged("its head does not have the checksum it should have");
  Head head;
  head.text = zstd_decompress(stored, header.raw);
  ByteReader in(view(head.text));
  head.shell = in.bytes(in.varint());
  read_tensors(head, in, kHeaderBytes + header.stored, file.size());
  return head;
}

}  // namespace quench::packed
