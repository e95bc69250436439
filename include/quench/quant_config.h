// SPDX-License-Identifier: Apache-2.0
// What the user asks for: rules by layer, name, operator type and for the whole model.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quench/plan.h"
#include "quench/statistics.h"
#include "quench/weight_quant.h"

namespace quench {

namespace ops {
enum class IntegerForm : std::uint8_t;  // Convolution, Product, LookupTable...: ops/facts.h
}

/// Observers of the user's own, by name: the range of an activation from what was seen of it.
/// A name that one of ours has stands for the user's.
using CustomObservers =
    std::map<std::string, std::function<Range(const Statistic& statistic, const QuantSpec& spec)>>;

/// Settings of one rule; what is left out comes from the next wider rule.
struct QuantRule {
  std::optional<std::string> activation_observer;
  std::optional<std::string> weight_observer;
  std::optional<int> activation_bits;
  std::optional<int> weight_bits;
  std::optional<bool> per_channel;
  std::optional<QuantType> type;  ///< full, weight or dynamic; else that of the whole job
  /// Leave the node in float; the most specific rule that matches decides.
  bool skip = false;
};

/// Rules in PaddleSlim's precedence: layer (exact node name) over name pattern over operator type
/// over global.
class QuantConfig {
 public:
  QuantRule global;
  std::map<std::string, QuantRule> by_layer;
  std::vector<std::pair<std::string, QuantRule>> by_name;  ///< globs; the first that matches wins
  std::map<std::string, QuantRule> by_type;

  std::vector<std::string> skip_quant_node;      ///< node names
  std::vector<std::string> skip_tensor_list;     ///< value names: nodes that read or make them
  std::vector<std::string> quantizable_op_type;  ///< empty: all that the target can do
  /// Only nodes that are quantised read rounded numbers. What others read stays in float, and of
  /// its scale the file takes note: it is for who runs those on integers, too. Files of Paddle can.
  bool round_for_layers_only = false;
  std::string target = "onnxruntime";
  std::string isa;  ///< "", "avx2", "vnni"
  /// Observers where no rule names one.
  std::string default_activation_observer = "mse";
  std::string default_weight_observer = "channel_wise_mse";
  std::map<std::string, std::string> value_observers;  ///< likewise, of activations by name
  double hist_percent = 0.99999;  ///< the share of values that the observer `hist` keeps
  int bins = 2048;                ///< of the histogram that `KL` and `hist` look at
  CustomObservers custom_observers;

  /// The merged rule for a node.
  QuantRule rule_for(const std::string& node_name, const std::string& op_type) const;
  /// Whether a rule names a type of quantisation.
  bool mixes_types() const;
};

/// How a runtime runs an operator, or all operators of one integer form that have no row of their
/// own.
struct TargetOp {
  NodePlan::Kind kind = NodePlan::Kind::Float;
  std::string_view op_type;  ///< "": those of `form`
  ops::IntegerForm form{};
  std::string_view reason;    ///< for Float: why; for Integer: why its input needs a scale anyway
  bool float_output = false;  ///< for Integer: its result may stay float
  /// For Integer: the runtime makes its result at one scale only, whose steps divide this.
  std::optional<Range> spans = {};
};

/// A runtime, described by data.
struct TargetInfo {
  std::string_view name;
  std::string_view summary;
  bool activation_signed = false;
  bool activation_symmetric = false;
  bool quantize_bias = true;     ///< as int32; else it stays float
  bool quantize_outputs = true;  ///< outputs of integer nodes get a scale too
  /// With this activation behind it, a convolution's result is quantised behind that.
  std::string_view scaled_activation = {};
  bool narrow_weights = false;  ///< -127..127
  bool per_channel = true;      ///< weights may have a scale for each channel
  /// Likewise those of depthwise transposed convolutions, along axis 0 and not 1.
  bool transposed_depthwise = false;
  /// A square matrix has one scale: the runtime mistakes the axis of several.
  bool square_per_tensor = false;
  /// An Add of a layer's result and a skip connection reads the layer's result unquantised.
  bool residual_in_float = false;
  bool shared_concat = false;  ///< the inputs and the output of a Concat have one scale
  bool integer_clip = false;   ///< it clips integers: a HardSigmoid may become that
  /// What stands behind the last layer runs on integers as well where it can: only the edges of the
  /// model are float.
  bool integer_ends = false;
  bool interpolates = false;  ///< it resizes integers by interpolation, at their scale
  std::string_view otherwise = "no integer kernel";  ///< the reason for what `ops` does not list
  std::vector<TargetOp> ops;
  /// The runtime's own limits: why it cannot run this node on integers, or "". May be null.
  std::string (*refuse)(const Graph& graph, const Node& node) = nullptr;
  /// Why it is faster with this node in float, or "". A rule of the user's that names the node
  /// wins.
  std::string (*prefer_float)(const Graph& graph, const Node& node) = nullptr;
  /// Its depthwise convolutions want a multiple of so many channels.
  std::int64_t depthwise_channels = 1;
};

const std::vector<TargetInfo>& all_targets();
/// Throws Error(Usage) with the nearest name.
const TargetInfo& find_target(std::string_view name);

/// Decides for every node and value of a prepared model (types inferred). A name in the
/// configuration that matches nothing is an Error(BadConfig) that suggests the nearest.
QuantPlan make_plan(const Model& model, const QuantConfig& config);

/// One line of `quench lint`.
struct LintLine {
  std::string node;
  std::string op_type;
  bool integer = false;
  std::string reason;
};
/// Whether the target will run each node of a quantised model on integers, and if not why.
std::vector<LintLine> lint(const Model& model, std::string_view target);

}  // namespace quench
