// SPDX-License-Identifier: Apache-2.0
// Reads evaluation samples into batches.
#include "analyze/eval_data.h"

#include <algorithm>

#include "base/format.h"
#include "base/parallel.h"

namespace quench::analyze {
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

Tensor joined(const std::vector<Sample>& samples, const std::string& name) {
  const Tensor& first = samples.front().inputs.at(name);
  if (samples.size() == 1) return first;
  Shape shape = first.shape();
  shape.at(0) = static_cast<std::int64_t>(samples.size());
  Tensor whole = Tensor::zeros(first.dtype(), shape);
  const auto bytes = whole.mutable_bytes();
  std::size_t at = 0;
  for (const Sample& sample : samples) {
    const auto part = sample.inputs.at(name).bytes();
    if (at + part.size() > bytes.size() || sample.inputs.at(name).shape() != first.shape()) {
      fail(ErrorKind::BadData, "sample '{}' has another shape than '{}'; use --batch 1",
           sample.name, samples.front().name);
    }
    std::ranges::copy(part, bytes.begin() + static_cast<std::ptrdiff_t>(at));
    at += part.size();
  }
  return whole;
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
    : source_(std::move(source)), context_(context) {
  const std::int64_t fixed = fixed_batch(inputs);
  fixed_ = fixed > 0;
  batch_ = fixed_ ? fixed : batch;
  if (!source_->batchable()) batch_ = 1;
  if (source_->size() == 0) fail(ErrorKind::BadData, "there are no samples to evaluate with");
}

std::int64_t EvalData::batches() const { return (size() + batch_ - 1) / batch_; }

std::shared_ptr<EvalBatch> EvalData::read(std::int64_t index) {
  const std::int64_t first = index * batch_;
  auto result = std::make_shared<EvalBatch>();
  result->samples = std::min(batch_, size() - first);
  result->rows = fixed_ ? batch_ : result->samples;
  std::vector<Sample> samples(static_cast<std::size_t>(result->rows));
  const int threads = source_->concurrent() ? context_.num_threads() : 1;
  parallel_for(result->samples, threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t place = first + i;
      samples[static_cast<std::size_t>(i)] =
          source_->read(order_.empty() ? place : order_[static_cast<std::size_t>(place)]);
    }
  });
  for (std::int64_t i = 0; i < result->rows; ++i) {
    auto& sample = samples[static_cast<std::size_t>(i)];
    if (i >= result->samples)
      sample = samples[static_cast<std::size_t>(result->samples - 1)];
    else
      result->labels.push_back(sample.label);
  }
  for (const auto& [name, tensor] : samples.front().inputs) {
    result->inputs[name] = joined(samples, name);
  }
  return result;
}

void EvalData::set_order(std::vector<std::int64_t> order) {
  order_ = std::move(order);
  kept_.clear();
  kept_bytes_ = 0;
}

std::shared_ptr<const EvalBatch> EvalData::batch(std::int64_t index) {
  context_.check_cancelled();
  const auto known = kept_.find(index);
  if (known != kept_.end()) return known->second;
  std::shared_ptr<const EvalBatch> made = read(index);
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

}  // namespace quench::analyze
