// SPDX-License-Identifier: Apache-2.0
// What the layers of the float model read and make on average, channel by channel.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "quench/plan.h"
#include "quench/session.h"

namespace quench::tune {

/// Means over the positions of a value.
struct SampleMeans {
  std::vector<std::vector<float>> rows;  ///< one number a channel, a row a sample
  bool by_sample = true;  ///< else samples of a run could not be told apart: their rows are alike
};
/// By the name of the value.
using LayerMeans = std::map<std::string, SampleMeans>;

/// All rows as one.
std::vector<float> mean_of(const std::vector<std::vector<float>>& rows);

/// The nodes that reduce `source` to its channels, sample by sample, appended to `nodes`. Returns
/// the value they end in, which is `source` itself where there is nothing to reduce.
ValueId add_sample_means(Model& model, ValueId source, std::size_t channel_axis,
                         std::vector<Node>& nodes);

/// A pass over the float model that leaves means behind, whatever else it is made for.
class MeanRecorder {
 public:
  MeanRecorder(const Model& model, const QuantPlan& plan);
  /// The float model with the means among its outputs.
  const Model& model() const noexcept { return model_; }
  /// What a run of that model over `samples` samples gave.
  void add(const TensorMap& outputs, std::int64_t samples);
  const LayerMeans& means() const noexcept { return means_; }

 private:
  void watch(const std::string& value, std::size_t channel_axis);

  Model model_;
  std::map<std::string, std::string> outputs_;  ///< by value: the output that holds its means
  LayerMeans means_;
};

/// The same by runs made for nothing else.
LayerMeans measure_means(const Model& model, const QuantPlan& plan, std::span<const TensorMap> runs,
                         const Context& context);

/// How many samples the inputs of a run hold.
std::int64_t samples_in(const TensorMap& inputs);

}  // namespace quench::tune
