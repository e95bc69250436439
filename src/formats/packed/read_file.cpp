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

std::vector<Task> list_tasks(std::span<const PackedTensor> tensors, std::size_t begin,
                             std::size_t end) {
  std::vector<Task> tasks;
  for (std::size_t i = begin; i < end; ++i) {
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
  std::vector<Buffer> buffers = unpack(file, head, 0, tensors.size());
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

std::vector<Buffer> unpack(Bytes file, const Head& head, std::size_t begin, std::size_t end) {
  const auto& tensors = head.tensors;
  std::vector<Buffer> buffers(end - begin);
  std::uint64_t total = 0;
  for (std::size_t i = begin; i < end; ++i) {
    if (tensors[i].storage == Storage::Same) continue;
    buffers[i - begin] = allocate(tensors[i].size);
    total += tensors[i].size;
    const Bytes inside = head.inside[i];
    if (inside.empty()) continue;
    std::memcpy(buffers[i - begin].bytes.data(), inside.data(), inside.size());
  }
  const auto tasks = list_tasks(tensors, begin, end);
  run_tasks(tasks.size(), total, [&](std::size_t i) {
    const Task& task = tasks[i];
    decode(file, task, tensors[task.tensor].num_symbols(), buffers[task.tensor - begin].bytes);
  });
  run_tasks(buffers.size(), total,
            [&](std::size_t i) { finish(buffers[i].bytes, tensors[begin + i].layout); });
  return buffers;
}

Model read_bytes(const onnx::Stored& file) {
  const Head head = read_head(file.bytes);
  return onnx::from_shell(head.shell, read_parts(file.bytes, head));
}

}  // namespace quench::packed
