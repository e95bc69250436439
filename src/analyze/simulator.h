// SPDX-License-Identifier: Apache-2.0
// A model with its statistics, from which any choice of quantised layers is made in milliseconds.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "quench/lower.h"
#include "quench/quant_config.h"

namespace quench::analyze {

/// A node with a constant weight that the configuration would quantise.
struct Layer {
  std::string name;  ///< as skip_quant_node calls it
  std::string op_type;
  std::string weight;  ///< name of the constant
  std::string output;  ///< the value it makes, behind an activation that runs inside it
  NodeId node = -1;
};

/// Which layers stay in float, and which weights have other bits than the configuration says.
struct Choice {
  std::set<std::string> in_float;
  std::map<std::string, int> weight_bits;
  auto operator<=>(const Choice&) const = default;
};

/// Statistics are collected once; grids are found once for each value, weight and spec.
class Simulator {
 public:
  /// `model` is prepared for quantisation; `threads` look for grids.
  Simulator(Model model, QuantConfig config, int threads = 1);

  const Model& model() const noexcept { return model_; }
  const QuantConfig& config() const noexcept { return config_; }
  /// In the order in which they run.
  const std::vector<Layer>& layers() const noexcept { return layers_; }
  /// The plan that quantises all of them.
  const QuantPlan& plan() const noexcept { return plan_; }
  /// Values whose statistics some choice may ask for.
  std::vector<std::string> wanted_statistics() const;
  void set_statistics(StatisticMap statistics) { statistics_ = std::move(statistics); }
  const StatisticMap& statistics() const noexcept { return statistics_; }

  QuantPlan plan_of(const Choice& choice) const;
  QuantSolution solve(const QuantPlan& plan);
  /// The model with Q/DQ nodes for a choice.
  Model quantized(const Choice& choice);
  /// Everything in float but one layer.
  Choice only(const std::string& name) const;
  QuantConfig config_of(const Choice& choice) const;

 private:
  struct ValueGrid {
    QuantSpec spec;
    bool fixed = false;
    QuantParams params;
  };
  const QuantParams& value_grid(const std::string& name, const ValuePlan& plan);
  const QuantParams& weight_grid(const WeightPlan& plan);

  Model model_;
  QuantConfig config_;
  int threads_;
  QuantPlan plan_;
  std::vector<Layer> layers_;
  StatisticMap statistics_;
  std::map<std::string, std::vector<ValueGrid>> values_;
  std::map<std::pair<NodeId, std::size_t>, std::vector<ValueGrid>> weights_;
};

/// The name under which a quantised graph holds what readers of `value` see: the output of the
/// DequantizeLinear behind it, or the value itself.
std::string seen_as(const Graph& quantized, const std::string& value);

}  // namespace quench::analyze
