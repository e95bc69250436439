// SPDX-License-Identifier: Apache-2.0
// From a model to a packed file: plan and encode some tensors at a time, write, read again.
#include <algorithm>
#include <cstring>
#include <map>

#include "base/format.h"
#include "formats/onnx/file.h"
#include "formats/packed/compress.h"
#include "formats/packed/file.h"
#include "formats/packed/tasks.h"
#include "quench/context.h"

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

/// For each core, tensors of so many bytes are in the works at a time, but little beside the model.
constexpr std::uint64_t kGroup = std::uint64_t{64} << 20;
constexpr std::uint64_t kLeastGroups = 8;

/// One chunk to be encoded, and what became of it.
struct Task {
  std::size_t tensor;
  PackedStream* stream;
  std::uint64_t number;
  std::string text;
};

std::uint64_t total_size(std::span<const Tensor> parts) {
  std::uint64_t total = 0;
  for (const Tensor& each : parts) total += each.num_bytes();
  return total;
}

/// Points tensors that repeat an earlier one to it.
void find_same(std::span<const Tensor> parts, std::vector<PackedTensor>& plans) {
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::size_t> known;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].num_bytes() < kSmall) continue;
    const Tensor tensor = parts[i].held();
    const Bytes bytes = tensor.bytes();
    const auto [place, is_new] = known.try_emplace({bytes.size(), checksum(bytes)}, i);
    const Tensor other = parts[place->second].held();
    const bool same = is_new || std::memcmp(bytes.data(), other.bytes().data(), bytes.size()) == 0;
    tensor.drop();
    other.drop();
    if (is_new || !same) continue;
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
    for (const std::size_t i : numbers) total += parts[i].num_bytes();
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

std::vector<Task> list_tasks(std::span<PackedTensor> plans) {
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

/// What became of a tensor.
struct Packed {
  PackedTensor plan;  ///< without its streams, once these are written
  std::string entry;  ///< in the head
  std::uint64_t planned = 0;
  std::uint64_t offset = 0;  ///< of its chunks among those set aside
  std::uint64_t stored = 0;
};

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

/// Packs the tensors of a model. The head of a file says where the chunks lie, so these are set
/// aside in a file of their own until all are known: memory would hold them all.
class Packer {
 public:
  Packer(const Model& model, const std::string& path, bool encode)
      : shell_(onnx::to_shell(model)), encode_(encode), chunks_(path) {}

  void pack() {
    std::vector<PackedTensor> plans(shell_.parts.size());
    for (std::size_t i = 0; i < plans.size(); ++i) plans[i].size = shell_.parts[i].num_bytes();
    find_same(shell_.parts, plans);
    make_pools(shell_.parts, plans);
    for (PackedTensor& plan : plans) tensors_.emplace_back().plan = std::move(plan);
    for_groups(shell_.parts, group_size(),
               [&](std::size_t begin, std::size_t end) { pack_group(begin, end, encode_); });
    undo_extremes();
  }

  void write(AtomicFile& file) {
    ByteWriter out;
    write_head(out);
    const std::string raw = out.take();
    const std::string head = zstd_compress(view(raw), kHeadLevel);
    std::uint64_t data = 0;
    for (const Packed& each : tensors_) data += each.stored;
    const std::string header = make_header(head.size(), raw.size(), data);
    ByteWriter sum;
    sum.u32(checksum(view(head), checksum(view(header))));
    file.write(view(header));
    file.write(view(sum.text()));
    file.write(view(head));
    const auto chunks = MappedFile::open(chunks_.temporary_path());
    for (const Packed& each : tensors_) {
      const auto part = chunks->bytes().subspan(static_cast<std::size_t>(each.offset),
                                                static_cast<std::size_t>(each.stored));
      file.write(part);
      release_pages(part);
    }
  }

  const onnx::Shell& shell() const noexcept { return shell_; }

 private:
  void pack_group(std::size_t begin, std::size_t end, bool encode_chunks) {
    std::vector<PackedTensor> plans(end - begin);
    const auto parts = std::span(shell_.parts).subspan(begin, end - begin);
    run_tasks(plans.size(), total_size(parts), [&](std::size_t i) {
      PackedTensor& before = tensors_[begin + i].plan;
      const bool fits = before.storage == Storage::Inline && before.size >= kSmall;
      const bool again = before.storage == Storage::Streams;
      plans[i] = fits || again ? plan_tensor(parts[i], encode_chunks) : std::move(before);
    });
    std::vector<Task> tasks = list_tasks(plans);
    run_tasks(tasks.size(), total_size(parts), [&](std::size_t i) {
      encode(parts[tasks[i].tensor], plans[tasks[i].tensor].num_symbols(), tasks[i]);
    });
    for (std::size_t i = 0; i < plans.size(); ++i) {
      tensors_[begin + i].offset = end_;
      tensors_[begin + i].stored = 0;
      parts[i].drop();
      set_down(plans[i], tensors_[begin + i]);
    }
    for (const Task& task : tasks) {
      Packed& tensor = tensors_[begin + task.tensor];
      if (tensor.stored == 0) tensor.offset = end_;
      tensor.stored += task.text.size();
      end_ += task.text.size();
      chunks_.write(view(task.text));
    }
  }

  std::uint64_t group_size() const {
    const auto cores = static_cast<std::uint64_t>(Context{}.num_threads());
    return std::min(cores * kGroup, std::max(kGroup, total_size(shell_.parts) / kLeastGroups));
  }

  /// Keeps what the head says of a tensor, and not the coders, which may hold its bytes.
  static void set_down(PackedTensor& plan, Packed& tensor) {
    ByteWriter out;
    write_entry(plan, out);
    tensor.entry = out.take();
    tensor.planned = planned_size(plan);
    plan.streams.clear();
    tensor.plan = std::move(plan);
  }

  /// Stores tensors that shrink too much plainly, where the file would grow too much when read.
  void undo_extremes() {
    std::uint64_t packed = 0;
    for (const Packed& each : tensors_) packed += each.planned;
    if (total_size(shell_.parts) <= most_bytes(packed)) return;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const Packed& each = tensors_[i];
      if (each.plan.storage != Storage::Streams) continue;
      if (each.plan.size / kMostShrinkage > each.planned) pack_group(i, i + 1, false);
    }
  }

  void write_head(ByteWriter& out) const {
    out.varint(shell_.text.size());
    out.bytes(view(shell_.text));
    out.varint(tensors_.size());
    for (const Packed& each : tensors_) out.bytes(view(each.entry));
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (tensors_[i].plan.storage == Storage::Inline) out.bytes(shell_.parts[i].bytes());
    }
  }

  onnx::Shell shell_;
  bool encode_;
  std::vector<Packed> tensors_;
  AtomicFile chunks_;  ///< never committed
  std::uint64_t end_ = 0;
};

}  // namespace

std::unique_ptr<Staged> stage_file(const Model& model, const std::string& path,
                                   const SaveOptions& options) {
  auto file = std::make_unique<AtomicFile>(path);
  Packer packer(model, path, options.encode);
  packer.pack();
  packer.write(*file);
  const auto written = MappedFile::open(file->temporary_path());
  expect_same(model, packer.shell().parts, written->bytes());
  return file;
}

}  // namespace quench::packed
