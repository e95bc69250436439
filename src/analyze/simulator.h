// SPDX-License-Identifier: Apache-2.0
// Any choice of quantised layers, from the statistics of one job, in milliseconds.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tune/stored_weights.h"

namespace quench::analyze {

/// A node with a constant weight that the configuration would quantise: with its activations, or
/// stored as integers by itself.
struct Layer {
  std::string name;  ///< as skip_quant_node calls it
  std::string op_type;
  std::string weight;  ///< name of the constant
  std::string output;  ///< the value it makes, behind an activation that runs inside it
  std::string node;    ///< its `output_name`
  bool stored = false;
};

/// Which layers stay in float, and which weights have other bits than the configuration says.
struct Choice {
  std::set<std::string> in_float;
  std::map<std::string, int> weight_bits;
  auto operator<=>(const Choice&) const = default;
};

/// The layers of a plan and of stored weights, each in the order in which they run.
std::vector<Layer> find_layers(const Graph& graph, const QuantPlan& plan,
                               const std::vector<WeightItem>& stored = {});
/// The values whose statistics some choice of quantised layers may ask for.
std::vector<std::string> values_of_any_choice(const Model& model, const QuantConfig& config);

/// Models that a job would make if it left other layers in float. Scales are found once for each
/// value, weight and spec; corrected biases go with the layers that are quantised.
class Simulator {
 public:
  /// Of a job that is solved and tuned, and was told to observe what any choice asks for. The job
  /// must outlive this.
  explicit Simulator(const tune::State& state);

  const Model& model() const noexcept { return state_.model; }
  const std::vector<Layer>& layers() const noexcept { return layers_; }
  /// The plan that quantises all of them.
  const QuantPlan& plan() const noexcept { return state_.plan; }
  const StatisticMap& statistics() const noexcept { return state_.statistics; }

  QuantPlan plan_of(const Choice& choice) const;
  QuantSolution solve(const QuantPlan& plan);
  /// The model of a choice, before its channels are padded; for all layers, that of the job itself.
  Model quantized(const Choice& choice);
  /// The weight of a stored layer as its readers multiply it, if they see it dequantised.
  std::optional<quant::QuantWeight> stored_weight(const Layer& layer);
  /// Everything in float but one layer.
  Choice only(const std::string& name) const;

 private:
  struct KnownParams {
    QuantSpec spec;
    bool fixed = false;
    QuantParams params;
  };
  const QuantParams& value_params(const std::string& name, const ValuePlan& plan);
  const QuantParams& weight_params(const WeightPlan& plan);
  Model with_integers(const Choice& choice);
  tune::StoredIntegers round(const tune::StoredItem& stored);
  const Model& corrected_alone();
  Model with_biases(const QuantPlan& plan);

  const tune::State& state_;
  std::vector<Layer> layers_;
  std::optional<Model> alone_;
  std::map<std::string, std::vector<KnownParams>> values_;
  std::map<WeightKey, std::vector<KnownParams>> weights_;
  std::map<std::pair<std::size_t, int>, tune::StoredIntegers> stored_;  ///< by place and bits
};

/// The name under which a quantised graph holds what readers of `value` see: the output of the
/// DequantizeLinear behind it, or the value itself.
std::string seen_as(const Graph& quantized, const std::string& value);

}  // namespace quench::analyze
