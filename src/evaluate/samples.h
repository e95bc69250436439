// SPDX-License-Identifier: Apache-2.0
// The samples of a job: the calibration set, and behind it the validation set.
#pragma once

#include <memory>
#include <vector>

#include "quench/data.h"

namespace quench::evaluation {

/// Samples [first, first + count).
struct SampleRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// What a data set is told by: its size and its first sample. Data that grew or changed at their
/// beginning are not the same data.
std::string identity_of(SampleSource& source);
/// How many samples a run takes at least: the batch of a model that fixes it, else one.
std::int64_t run_size(const SampleSource& source, const std::vector<Value>& inputs);
/// Samples in runs of at most `most`, or of the size that the model fixes. Where samples have
/// different shapes, a run ends before one of another shape.
std::vector<TensorMap> read_runs(SampleSource& source, const std::vector<Value>& inputs,
                                 SampleRange samples, std::int64_t most);

/// Both sets are whole runs of the model. Nothing, where a job has no data.
class Samples {
 public:
  Samples() = default;
  /// At most `most_validation` samples validate, and where others calibrate no more than a fifth.
  Samples(std::unique_ptr<SampleSource> source, const Graph& graph, std::int64_t most_validation,
          bool calibrates);

  bool any() const noexcept { return source_ != nullptr; }
  SampleSource& source() const { return *source_; }
  const std::vector<Value>& inputs() const noexcept { return inputs_; }
  SampleRange calibration() const noexcept { return {.first = 0, .count = calibration_}; }
  SampleRange validation() const noexcept { return {.first = calibration_, .count = validation_}; }
  std::int64_t run_size() const { return evaluation::run_size(*source_, inputs_); }
  /// The first samples of the calibration set: at most `most`, in whole runs.
  SampleRange first(std::int64_t most) const;
  std::vector<TensorMap> read(SampleRange range, std::int64_t most) const;

 private:
  std::unique_ptr<SampleSource> source_;
  std::vector<Value> inputs_;
  std::int64_t calibration_ = 0;
  std::int64_t validation_ = 0;
};

}  // namespace quench::evaluation
