// SPDX-License-Identifier: Apache-2.0
// Chooses how a tensor is stored: tries every coding on every lane and keeps the smallest.
#include <algorithm>

#include "formats/packed/file.h"

namespace quench::packed {
namespace {

/// The place of plain storage in the list of codings.
constexpr std::size_t kPlain = 0;

PackedStream plan_stream(Survey survey, bool encode) {
  const auto codings = all_codings();
  PackedStream best;
  best.lane = survey.lane;
  best.coder = codings[kPlain].plan(survey);
  for (std::size_t i = 1; i < codings.size() && encode; ++i) {
    survey.best = best.coder->size();
    auto coder = codings[i].plan(survey);
    if (!coder || coder->size() >= survey.best) continue;
    best.coder = std::move(coder);
    best.coding = i;
  }
  return best;
}

/// zstd over the bytes as they are: patterns that run across lanes.
void try_bytes(const Tensor& tensor, PackedTensor& plan) {
  const auto codings = all_codings();
  const std::size_t zstd = codings.size() - 1;
  const Lane lane;
  Survey whole;
  whole.info = {.count = plan.size, .bits = lane.bits};
  whole.tensor = tensor.bytes();
  whole.lane = lane;
  whole.best = planned_size(plan);
  auto coder = codings[zstd].plan(whole);
  if (!coder || coder->size() >= whole.best) return;
  plan.layout = {};
  plan.streams.clear();
  PackedStream& stream = plan.streams.emplace_back();
  stream.lane = lane;
  stream.coding = zstd;
  stream.coder = std::move(coder);
}

}  // namespace

std::pair<std::uint64_t, std::uint64_t> chunk_range(const Coder& coder, std::uint64_t count,
                                                    std::uint64_t number) noexcept {
  if (coder.in_one_chunk()) return {0, count};
  return {number * kChunk, std::min(count, (number + 1) * kChunk)};
}

std::uint64_t num_chunks(const Coder& coder, std::uint64_t count) noexcept {
  return coder.in_one_chunk() ? 1 : (count + kChunk - 1) / kChunk;
}

PackedTensor plan_tensor(const Tensor& tensor, bool encode) {
  PackedTensor plan;
  plan.size = tensor.num_bytes();
  plan.storage = Storage::Streams;
  plan.layout = layout_of(tensor.dtype());
  const std::uint64_t count = plan.num_symbols();
  for (const Lane& lane : lanes_of(plan.layout)) {
    plan.streams.push_back(
        plan_stream(survey(tensor.bytes(), lane, count, tensor.shape()), encode));
  }
  if (encode && (plan.layout.width > 1 || plan.layout.bits != 8)) try_bytes(tensor, plan);
  return plan;
}

std::uint64_t planned_size(const PackedTensor& tensor) {
  std::uint64_t size = 0;
  for (const PackedStream& stream : tensor.streams) size += stream.coder->size();
  return size;
}

}  // namespace quench::packed
