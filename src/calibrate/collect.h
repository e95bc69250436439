// SPDX-License-Identifier: Apache-2.0
// One pass over the data, every wanted value into one statistic.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "quench/data.h"
#include "quench/quant_config.h"
#include "quench/session.h"
#include "quench/statistics.h"

namespace quench::calibrate {

/// What a pass reads.
struct CollectOptions {
  std::int64_t batch = 4;
  std::int64_t first = 0;   ///< index of the first sample
  std::int64_t count = -1;  ///< how many; -1: all
  StatisticMap seen;        ///< of the samples before the first
  /// Called with the model's outputs of each batch, and its number of samples.
  std::function<void(const TensorMap&, std::int64_t)> on_outputs;
  /// Called after each batch with the number of samples seen in all, and a way to get at what was
  /// seen of them.
  std::function<void(std::int64_t, const std::function<StatisticMap()>&)> after_batch;
  bool integer = false;  ///< quantised parts of the model run on integers
  /// Values that are only shown to `on_other`, from the session's threads, by their index here.
  std::vector<std::string> others;
  std::function<void(const TapSample&)> on_other;
};

/// The statistics of `values` over the samples of a source, streamed: memory does not grow with
/// their number, and the result does not depend on the batch size or the number of threads.
StatisticMap collect(const Model& model, const std::vector<std::string>& values,
                     SampleSource& source, const CollectOptions& options, const Context& context);

/// Every observer that a plan names must exist, among ours or the user's: else an Error with the
/// nearest, before any data are read.
void check_observers(const QuantPlan& plan, const CustomObservers& custom);

/// The scale of every value and weight of a plan: observers over statistics, then `choose_params`.
/// The number of threads does not change the result. `shards` are the processes that hold the other
/// parts of a split model, which has the scales of the whole one.
QuantSolution solve(const Model& model, const QuantPlan& plan, const StatisticMap& statistics,
                    const CustomObservers& custom = {}, int threads = 1, Ranks* shards = nullptr);

/// The values whose quantisation parameters come from statistics.
std::vector<std::string> observed_values(const QuantPlan& plan);
/// Gives every value that shares the parameters of another what was found for that one.
void share_params(const QuantPlan& plan, QuantSolution& solution);

/// Whether some value asks for the observer `auto`, which wants held-out samples.
bool wants_held_out(const QuantPlan& plan);
/// The plan with `auto` replaced, value by value, by the observer whose range, chosen from `seen`,
/// makes the least error on `held_out`.
QuantPlan choose_observers(QuantPlan plan, const StatisticMap& seen, const StatisticMap& held_out);

}  // namespace quench::calibrate
