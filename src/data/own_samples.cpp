// SPDX-License-Identifier: Apache-2.0
// Samples that the caller's code gives.
#include "data/own_samples.h"

#include <algorithm>

#include "base/format.h"
#include "quench/given_samples.h"

namespace quench {
namespace data {
namespace {

/// The first samples of a source, which stays the caller's.
class Own final : public SampleSource {
 public:
  Own(const DataOptions& options, const std::vector<Value>& inputs)
      : source_(options.source), size_(options.source->size()) {
    if (options.limit > 0) size_ = std::min(size_, options.limit);
    for (const Value& input : inputs) inputs_.push_back(input.name);
    if (size_ == 0) fail(ErrorKind::BadData, "{} are none", options.path);
  }

  std::int64_t size() const override { return size_; }
  bool has_labels() const override { return source_->has_labels(); }
  std::shared_ptr<const Truths> truths() const override { return source_->truths(); }
  bool raw_pixels() const override { return source_->raw_pixels(); }
  bool concurrent() const override { return source_->concurrent(); }
  bool batchable() const override { return source_->batchable(); }
  Sample read(std::int64_t index) override {
    if (index < 0 || index >= size_) {
      fail(ErrorKind::Usage, "there is no sample {}; there are {}", index, size_);
    }
    Sample sample = source_->read(index);
    for (const std::string& name : inputs_) {
      if (sample.inputs.contains(name)) continue;
      fail(ErrorKind::BadData, "sample {} has no tensor for the input '{}'", index, name);
    }
    return sample;
  }

 private:
  std::shared_ptr<SampleSource> source_;
  std::int64_t size_;
  std::vector<std::string> inputs_;
};

}  // namespace

std::unique_ptr<SampleSource> open_own_samples(const DataOptions& options,
                                               const std::vector<Value>& inputs) {
  return std::make_unique<Own>(options, inputs);
}

}  // namespace data

DataOptions own_samples(std::shared_ptr<SampleSource> source) {
  if (source == nullptr) fail(ErrorKind::Usage, "own_samples needs a source");
  DataOptions options;
  options.path = kGivenPath;
  options.source = std::move(source);
  return options;
}

DataOptions own_samples(std::vector<TensorMap> samples) {
  GivenSamples given;
  for (TensorMap& sample : samples)
    given.batches.push_back({.named = std::move(sample), .in_order = {}});
  DataOptions options;
  options.path = kGivenPath;
  options.given = std::make_shared<const GivenSamples>(std::move(given));
  return options;
}

}  // namespace quench
