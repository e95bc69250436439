// SPDX-License-Identifier: Apache-2.0
// From a model to a packed file: plan every tensor, encode every chunk, write, read again, rename.
#include <algorithm>
#include <cstring>
#include <map>

#include "base/format.h"
#include "formats/onnx/file.h"
#include "formats/packed/compress.h"
#include "formats/packed/file.h"
#include "formats/packed/tasks.h"

namespace quench::packed {
namespace {

/// Smaller tensors share streams with others of their type.
constexpr std::uint64_t kSmall = 1024;
/// Still smaller ones lie in the head: zstd finds there what they have in common.
constexpr std::uint64_t kTiny = 64;
/// A tensor that shrinks more is stored plainly where the file would grow too much when read.
constexpr std::uint64_t kMostShrinkage = 256;
/// The strongest level zstd has; the head is small.
constexpr int kHeadLevel = 22;

/// One chunk to be encoded, and what became of it.
struct Task {
  std::size_t tensor;
  PackedStream* stream;
  std::uint64_t number;
  std::string text;
};

std::uint64_t total_size(std::span<const Tensor> parts) {
  std::uint64_t total = 0;
  for (const Tensor& each : parts) total += each.bytes().size();
  return total;
}

/// Points tensors that repeat an earlier one to it.
void find_same(std::span<const Tensor> parts, std::vector<PackedTensor>& plans) {
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::size_t> known;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Bytes bytes = parts[i].bytes();
    if (bytes.size() < kSmall) continue;
    const auto [place, is_new] = known.try_emplace({bytes.size(), checksum(bytes)}, i);
    if (is_new) continue;
    const Bytes other = parts[place->second].bytes();
    if (std::memcmp(bytes.data(), other.data(), bytes.size()) != 0) continue;
    plans[i].storage = Storage::Same;
    plans[i].other = place->second;
  }
}

/// Joins small tensors of a type into a tensor of its own behind all others.
void make_pools(std::vector<Tensor>& parts, std::vector<PackedTensor>& plans) {
  std::map<DType, std::vector<std::size_t>> members;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::uint64_t size = plans[i].size;
    if (size >= kTiny && size < kSmall) members[parts[i].dtype()].push_back(i);
  }
  for (const auto& [dtype, numbers] : members) {
    std::size_t total = 0;
    for (const std::size_t i : numbers) total += parts[i].bytes().size();
    if (total < kSmall) continue;
    const auto count = static_cast<std::int64_t>(8 * total) / info(dtype).bits;
    Tensor pool = Tensor::zeros(dtype, {count});
    std::byte* out = pool.mutable_bytes().data();
    for (const std::size_t i : numbers) {
      const Bytes bytes = parts[i].bytes();
      out = std::ranges::copy(bytes, out).out;
      plans[i].storage = Storage::Pooled;
      plans[i].other = parts.size();
    }
    parts.push_back(std::move(pool));
    plans.emplace_back().size = total;
  }
}

std::vector<PackedTensor> plan_all(std::vector<Tensor>& parts, bool encode) {
  std::vector<PackedTensor> plans(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) plans[i].size = parts[i].bytes().size();
  find_same(parts, plans);
  make_pools(parts, plans);
  run_tasks(parts.size(), total_size(parts), [&](std::size_t i) {
    if (plans[i].storage != Storage::Inline || plans[i].size < kSmall) return;
    plans[i] = plan_tensor(parts[i], encode);
  });
  std::uint64_t packed = 0;
  for (const PackedTensor& plan : plans) packed += planned_size(plan);
  if (total_size(parts) <= most_bytes(packed)) return plans;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    PackedTensor& plan = plans[i];
    if (plan.storage != Storage::Streams) continue;
    if (plan.size / kMostShrinkage > planned_size(plan)) plan = plan_tensor(parts[i], false);
  }
  return plans;
}

std::vector<Task> list_tasks(std::vector<PackedTensor>& plans) {
  std::vector<Task> tasks;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const std::uint64_t count = plans[i].num_symbols();
    for (PackedStream& stream : plans[i].streams) {
      const std::uint64_t chunks = num_chunks(*stream.coder, count);
      stream.chunks.resize(static_cast<std::size_t>(chunks));
      for (std::uint64_t k = 0; k < chunks; ++k) tasks.push_back({i, &stream, k, {}});
    }
  }
  return tasks;
}

void encode(const Tensor& tensor, std::uint64_t count, Task& task) {
  const Coder& coder = *task.stream->coder;
  const auto [begin, end] = chunk_range(coder, count, task.number);
  std::vector<Symbol> symbols;
  if (!coder.in_one_chunk()) {
    symbols.resize(static_cast<std::size_t>(end - begin));
    load(tensor.bytes(), task.stream->lane, begin, symbols);
  }
  task.text = coder.encode(symbols, begin);
  auto& chunk = task.stream->chunks[static_cast<std::size_t>(task.number)];
  chunk.size = task.text.size();
  chunk.checksum = checksum(view(task.text));
}

void write_entry(const PackedTensor& plan, ByteWriter& out) {
  out.varint(plan.size);
  out.u8(static_cast<std::uint8_t>(plan.storage));
  if (plan.storage == Storage::Same || plan.storage == Storage::Pooled) out.varint(plan.other);
  if (plan.storage != Storage::Streams) return;
  out.u8(static_cast<std::uint8_t>(plan.layout.bits));
  out.u8(static_cast<std::uint8_t>(plan.layout.width));
  out.u8(static_cast<std::uint8_t>((plan.layout.flip ? 1 : 0) | (plan.layout.rotate ? 2 : 0)));
  for (const PackedStream& stream : plan.streams) {
    out.u8(static_cast<std::uint8_t>(stream.coding));
    out.bytes(view(stream.coder->params()));
    for (const PackedStream::Chunk& chunk : stream.chunks) {
      out.varint(chunk.size);
      out.u32(chunk.checksum);
    }
  }
}

std::string make_head(const onnx::Shell& shell, std::span<const PackedTensor> plans) {
  ByteWriter out;
  out.varint(shell.text.size());
  out.bytes(view(shell.text));
  out.varint(plans.size());
  for (const PackedTensor& plan : plans) write_entry(plan, out);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (plans[i].storage == Storage::Inline) out.bytes(shell.parts[i].bytes());
  }
  return out.take();
}

/// The header, all but its checksum.
std::string make_header(std::uint64_t head_stored, std::uint64_t head_raw, std::uint64_t data) {
  ByteWriter out;
  out.bytes(view(kMagic));
  out.u32(kVersion);
  out.u32(0);
  out.u64(kHeaderBytes + head_stored + data);
  out.u64(head_stored);
  out.u64(head_raw);
  return out.take();
}

}  // namespace

void write_file(const Model& model, const std::string& path, const SaveOptions& options) {
  onnx::Shell shell = onnx::to_shell(model);
  std::vector<PackedTensor> plans = plan_all(shell.parts, options.encode);
  std::vector<Task> tasks = list_tasks(plans);
  run_tasks(tasks.size(), total_size(shell.parts), [&](std::size_t i) {
    encode(shell.parts[tasks[i].tensor], plans[tasks[i].tensor].num_symbols(), tasks[i]);
  });
  std::uint64_t data = 0;
  for (const Task& task : tasks) data += task.text.size();
  const std::string raw = make_head(shell, plans);
  const std::string head = zstd_compress(view(raw), kHeadLevel);
  const std::string header = make_header(head.size(), raw.size(), data);
  ByteWriter sum;
  sum.u32(checksum(view(head), checksum(view(header))));
  AtomicFile file(path);
  file.write(view(header));
  file.write(view(sum.text()));
  file.write(view(head));
  for (const Task& task : tasks) file.write(view(task.text));
  const auto written = MappedFile::open(file.temporary_path());
  onnx::expect_same(model, read_bytes({written->bytes(), written}));
  file.commit();
}

}  // namespace quench::packed
