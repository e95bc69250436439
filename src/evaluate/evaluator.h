// SPDX-License-Identifier: Apache-2.0
// Holds models against a float model, and against labels, on one set of samples.
#pragma once

#include <functional>
#include <map>
#include <optional>

#include "evaluate/eval_data.h"
#include "evaluate/sample_metric.h"
#include "exec/runs_ahead.h"
#include "metrics/paired.h"
#include "metrics/peaks.h"
#include "quench/evaluate.h"
#include "quench/session.h"

namespace quench::evaluation {

/// The SQNR of the worst output in dB.
double worst_sqnr(const std::vector<OutputScores>& outputs);

/// How far outputs are from those of the float model.
struct OutputError {
  double relative = 0;  ///< squared error over squared outputs, summed over outputs and batches
  double cosine = 1;    ///< the worst of the outputs
};

/// The float model's outputs are computed once.
class Evaluator {
 public:
  /// Nothing to evaluate with.
  explicit Evaluator(const Context& context) : context_(&context) {}
  Evaluator(const Model& reference, EvalData data, const Context& context);

  /// Whether there is anything to evaluate with.
  bool able() const noexcept { return data_ && data_->batches() > 0 && !outputs_.empty(); }
  EvalData& data() { return *data_; }
  /// What the float model gave, by batch.
  const std::vector<TensorMap>& expected() const noexcept { return expected_; }
  /// The inputs of the first `most` batches.
  std::vector<TensorMap> inputs(std::size_t most) const;

  /// From now on `scores` hold the `peak_sqnr` of outputs that have peaks, too.
  void watch_peaks();
  /// The metrics that fit each output; empty when not able. `noise`, if given, gets the
  /// energies of each output, sample by sample.
  std::vector<OutputScores> scores(const Model& model,
                                   std::vector<metrics::OutputNoise>* noise = nullptr) const;
  /// How many values the smallest of the outputs has in all batches together.
  std::int64_t least_values() const;
  /// The SQNR of the worst output in dB.
  double sqnr(const Model& model) const { return worst_sqnr(scores(model)); }
  OutputError error(const Model& model) const;

  /// One metric, sample by sample. `go_on` is asked after each batch but the last; empty: always.
  using GoOn = std::function<bool(const std::vector<SampleScore>& seen)>;
  std::vector<SampleScore> samples(const Model& model, const SampleMetric& metric,
                                   const GoOn& go_on = {}) const;
  /// Likewise, by this process alone where ranks share the rest.
  std::vector<SampleScore> samples_here(const Model& model, const SampleMetric& metric,
                                        const GoOn& go_on = {}) const;
  /// The same of the float model itself: its score by labels, and 0 noise.
  std::vector<SampleScore> own_samples(const SampleMetric& metric) const;
  /// From now on samples come in this order.
  void set_order(std::vector<std::int64_t> order);

 private:
  void run_reference();
  /// Runs of a session over all batches.
  exec::RunsAhead runs(Session& session, std::vector<std::string> wanted = {}) const;
  /// The outputs of the next batch, as long as those of the reference.
  TensorMap next(exec::RunsAhead& runs, std::int64_t index) const;
  std::vector<SampleScore> samples_together(const Model& model, const SampleMetric& metric,
                                            const GoOn& go_on) const;
  void add_noise(std::int64_t index, const TensorMap& got,
                 std::vector<metrics::OutputNoise>& noise) const;

  const Context* context_;
  mutable std::optional<EvalData> data_;  ///< reading a batch may keep it
  std::optional<Model> reference_;
  std::vector<TensorMap> expected_;
  std::vector<std::string> outputs_;
  std::map<std::string, metrics::Peaks> peaks_;
};

}  // namespace quench::evaluation
