// SPDX-License-Identifier: Apache-2.0
// From a packed file to a model: all chunks at once, on every core.
#include <cstring>
#include <new>

#include "base/format.h"
#include "formats/onnx/file.h"
#include "formats/packed/file.h"
#include "formats/packed/tasks.h"

namespace quench::packed {
namespace {

/// Memory for an unpacked tensor.
struct Buffer {
  std::span<std::byte> bytes;
  std::shared_ptr<std::byte> owner;
};

Buffer allocate(std::uint64_t size) {
  constexpr std::align_val_t kAlignment{64};
  auto* bytes = static_cast<std::byte*>(::operator new(static_cast<std::size_t>(size), kAlignment));
  std::shared_ptr<std::byte> owner(bytes, [](std::byte* p) { ::operator delete(p, kAlignment); });
  return {{bytes, static_cast<std::size_t>(size)}, std::move(owner)};
}

/// One chunk to be decoded.
struct Task {
  std::size_t tensor;
  const PackedStream* stream;
  std::uint64_t number;
};

std::vector<Task> list_tasks(const std::vector<PackedTensor>& tensors) {
  std::vector<Task> tasks;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    for (const PackedStream& stream : tensors[i].streams) {
      for (std::uint64_t k = 0; k < stream.chunks.size(); ++k) tasks.push_back({i, &stream, k});
    }
  }
  return tasks;
}

void decode(Bytes file, const Task& task, std::uint64_t count, std::span<std::byte> out) {
  const PackedStream::Chunk& chunk = task.stream->chunks[static_cast<std::size_t>(task.number)];
  const Bytes bytes =
      file.subspan(static_cast<std::size_t>(chunk.offset), static_cast<std::size_t>(chunk.size));
  if (checksum(bytes) != chunk.checksum) {
    fail_damaged(format("tensor {} does not have the checksum it should have", task.tensor));
  }
  const auto [begin, end] = chunk_range(*task.stream->coder, count, task.number);
  std::vector<Symbol> symbols(static_cast<std::size_t>(end - begin));
  task.stream->coder->decode(bytes, begin, symbols);
  store(out, task.stream->lane, begin, symbols);
  release_pages(bytes);
}

/// Gives small tensors their bytes of the pools, one after the other.
void empty_pools(std::span<const PackedTensor> tensors, std::span<Buffer> buffers) {
  std::vector<std::size_t> taken(tensors.size(), 0);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].storage != Storage::Pooled || tensors[i].size == 0) continue;
    const auto pool = static_cast<std::size_t>(tensors[i].other);
    const auto out = buffers[i].bytes;
    std::memcpy(out.data(), buffers[pool].bytes.data() + taken[pool], out.size());
    taken[pool] += out.size();
  }
}

std::vector<onnx::Stored> read_parts(Bytes file, const Head& head) {
  const auto& tensors = head.tensors;
  std::vector<Buffer> buffers(tensors.size());
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].storage == Storage::Same) continue;
    buffers[i] = allocate(tensors[i].size);
    total += tensors[i].size;
    const Bytes inside = head.inside[i];
    if (!inside.empty()) std::memcpy(buffers[i].bytes.data(), inside.data(), inside.size());
  }
  const auto tasks = list_tasks(tensors);
  run_tasks(tasks.size(), total, [&](std::size_t i) {
    const Task& task = tasks[i];
    decode(file, task, tensors[task.tensor].num_symbols(), buffers[task.tensor].bytes);
  });
  run_tasks(tensors.size(), total,
            [&](std::size_t i) { finish(buffers[i].bytes, tensors[i].layout); });
  empty_pools(tensors, buffers);
  std::vector<onnx::Stored> parts;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].storage == Storage::Same) {
      parts.push_back(parts[static_cast<std::size_t>(tensors[i].other)]);
    } else {
      parts.push_back({buffers[i].bytes, std::move(buffers[i].owner)});
    }
  }
  return parts;
}

}  // namespace

Model read_bytes(const onnx::Stored& file) {
  const Head head = read_head(file.bytes);
  return onnx::from_shell(head.shell, read_parts(file.bytes, head));
}

}  // namespace quench::packed
