// SPDX-License-Identifier: Apache-2.0
// Reads evaluation samples into batches.
#include "evaluate/eval_data.h"

#include <algorithm>

#include "base/format.h"
#include "base/parallel.h"
#include "data/join.h"

namespace quench::evaluation {
namespace {

constexpr std::size_t kMaxKept = std::size_t{1} << 30;

/// The batch that the inputs fix, or 0.
std::int64_t fixed_batch(const std::vector<Value>& inputs) {
  for (const Value& value : inputs) {
    if (!value.type.shape || value.type.shape->empty()) continue;
    const Dim& first = value.type.shape->front();
    if (first.known()) return std::max<std::int64_t>(1, first.value);
  }
  return 0;
}

/// Whether samples may have different shapes.
bool leaves_shapes_open(const std::vector<Value>& inputs) {
  return std::ranges::any_of(inputs, [](const Value& value) {
    if (!value.type.shape) return true;
    const auto& shape = *value.type.shape;
    return std::any_of(shape.begin() + (shape.empty() ? 0 : 1), shape.end(),
                       [](const Dim& dim) { return !dim.known(); });
  });
}

}  // namespace

std::uint64_t hash_bytes(std::span<const std::byte> bytes, std::uint64_t seed) {
  constexpr std::uint64_t kPrime = 0x100000001b3U;
  for (const std::byte each : bytes) seed = (seed ^ static_cast<std::uint64_t>(each)) * kPrime;
  return seed;
}

std::uint64_t hash_text(std::string_view text, std::uint64_t seed) {
  return hash_bytes(std::as_bytes(std::span(text.data(), text.size())), seed);
}

Tensor row_of(const Tensor& output, std::int64_t index, std::int64_t rows) {
  if (rows <= 1 || output.rank() == 0 || output.shape()[0] % rows != 0) return output;
  Shape shape = output.shape();
  shape[0] /= rows;
  const std::size_t size = output.bytes().size() / static_cast<std::size_t>(rows);
  return Tensor::view(output.dtype(), shape,
                      output.bytes().subspan(static_cast<std::size_t>(index) * size, size),
                      output.owner());
}

EvalData::EvalData(std::unique_ptr<SampleSource> source, const std::vector<Value>& inputs,
                   std::int64_t batch, const Context& context)
    : source_(std::move(source)), context_(&context) {
  const std::int64_t fixed = fixed_batch(inputs);
  fixed_ = fixed > 0;
  batch_ = fixed_ ? fixed : batch;
  if (!source_->batchable()) batch_ = 1;
  if (source_->size() == 0) fail(ErrorKind::BadData, "there are no samples to evaluate with");
  if (batch_ > 1 && leaves_shapes_open(inputs)) read_shapes();
  divide();
}

EvalData::EvalData(std::vector<TensorMap> runs, const Context& context) : context_(&context) {
  std::int64_t first = 0;
  for (TensorMap& run : runs) {
    auto batch = std::make_shared<EvalBatch>();
    const Shape& shape = run.empty() ? Shape() : run.begin()->second.shape();
    batch->samples = batch->rows = shape.empty() ? 1 : shape[0];
    batch->inputs = std::move(run);
    kept_[static_cast<std::int64_t>(runs_.size())] = batch;
    runs_.push_back({.first = first, .count = batch->samples});
    first += batch->samples;
  }
}

std::int64_t EvalData::size() const {
  if (source_) return source_->size();
  return runs_.empty() ? 0 : runs_.back().first + runs_.back().count;
}

std::int64_t EvalData::at(std::int64_t place) const {
  return order_.empty() ? place : order_[static_cast<std::size_t>(place)];
}

std::int64_t EvalData::samples_until(std::int64_t index) const {
  const Run& run = runs_.at(static_cast<std::size_t>(index));
  return run.first + run.count;
}

void EvalData::read_shapes() {
  shapes_.resize(static_cast<std::size_t>(size()));
  const int threads = source_->concurrent() ? context_->num_threads() : 1;
  parallel_for(size(), threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      context_->check_cancelled();
      for (const auto& [name, tensor] : source_->read(i).inputs) {
        shapes_[static_cast<std::size_t>(i)].push_back(tensor.shape());
      }
    }
  });
}

void EvalData::divide() {
  runs_.clear();
  const auto shapes = [&](std::int64_t place) -> const std::vector<Shape>& {
    return shapes_[static_cast<std::size_t>(at(place))];
  };
  for (std::int64_t i = 0; i < size(); ++i) {
    const bool joins = !runs_.empty() && runs_.back().count < batch_ &&
                       (shapes_.empty() || shapes(i) == shapes(i - 1));
    if (joins) {
      ++runs_.back().count;
    } else {
      runs_.push_back({.first = i, .count = 1});
    }
  }
}

std::shared_ptr<EvalBatch> EvalData::read(const Run& run) {
  auto result = std::make_shared<EvalBatch>();
  result->samples = run.count;
  result->rows = fixed_ ? batch_ : run.count;
  std::vector<Sample> samples(static_cast<std::size_t>(run.count));
  const int threads = source_->concurrent() ? context_->num_threads() : 1;
  parallel_for(run.count, threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      samples[static_cast<std::size_t>(i)] = source_->read(at(run.first + i));
    }
  });
  samples.resize(static_cast<std::size_t>(result->rows), Sample(samples.back()));
  Batch batch = join(std::move(samples));
  result->inputs = std::move(batch.inputs);
  result->labels = std::move(batch.labels);
  result->labels.resize(static_cast<std::size_t>(run.count));
  return result;
}

void EvalData::set_order(std::vector<std::int64_t> order) {
  order_ = std::move(order);
  divide();
  kept_.clear();
  kept_bytes_ = 0;
}

std::shared_ptr<const EvalBatch> EvalData::batch(std::int64_t index) {
  context_->check_cancelled();
  const auto known = kept_.find(index);
  if (known != kept_.end()) return known->second;
  std::shared_ptr<const EvalBatch> made = read(runs_.at(static_cast<std::size_t>(index)));
  std::size_t bytes = 0;
  for (const auto& [name, tensor] : made->inputs) bytes += tensor.bytes().size();
  if (kept_bytes_ + bytes <= kMaxKept) {
    kept_bytes_ += bytes;
    kept_[index] = made;
  }
  return made;
}

std::uint64_t EvalData::fingerprint() {
  constexpr std::int64_t kLooked = 8;
  std::uint64_t hash = hash_text(format("{} samples", size()));
  const std::int64_t step = std::max<std::int64_t>(1, size() / kLooked);
  for (std::int64_t i = 0; i < size(); i += step) {
    const Sample sample = source_->read(i);
    for (const auto& [name, tensor] : sample.inputs) hash = hash_bytes(tensor.bytes(), hash);
    hash = hash_text(format("{} {}", sample.name, sample.label), hash);
  }
  return hash;
}

}  // namespace quench::evaluation
