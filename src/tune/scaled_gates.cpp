// SPDX-License-Identifier: Apache-2.0
// Puts scales back in front of gates.
#include "tune/scaled_gates.h"

#include <algorithm>

#include "base/format.h"
#include "plan/facts.h"

namespace quench::tune {
namespace {

constexpr std::size_t kImageRank = 4;
constexpr std::int64_t kClipBoundsAreInputs = 11;

using Scales = std::vector<double>;

class Gates {
 public:
  Gates(Model& model, bool by_channel)
      : graph_(model.graph), layers_allowed_(by_channel && model.opset() >= kClipBoundsAreInputs) {}

  void rescale(const ScaledGate& each) {
    Node& gate = graph_.nodes[static_cast<std::size_t>(each.gate)];
    const ValueId input = gate.inputs[0];
    const ValueType type = graph_[input].type;
    stem_ = graph_[input].name;
    const std::size_t rank = type.shape->size();
    const bool as_layer = layers_allowed_ && gate.op_type == "HardSigmoid" && rank == kImageRank;
    Node back =
        as_layer ? slope(gate, each.scales, type.dtype) : unscale(each.scales, rank, type.dtype);
    back.name = format("{}_equalized_{}", stem_, each.gate);
    back.inputs.insert(back.inputs.begin(), input);
    back.outputs = {graph_.add_fresh(stem_ + "_unscaled", type)};
    if (as_layer) become_clip(gate, type.dtype);
    if (!as_layer) float_nodes_.push_back(back.name);
    gate.inputs[0] = back.outputs[0];
    graph_.nodes.insert(graph_.nodes.begin() + each.gate, std::move(back));
  }

  std::vector<std::string> float_nodes() && { return std::move(float_nodes_); }

 private:
  ValueId constant(const char* what, Shape shape, const Scales& numbers, DType dtype) {
    return graph_.add_constant(stem_ + what,
                               convert(Tensor::of<double>(std::move(shape), numbers), dtype));
  }

  Node unscale(const Scales& scales, std::size_t rank, DType dtype) {
    Shape shape(rank, 1);
    shape[1] = static_cast<std::int64_t>(scales.size());
    Node back;
    back.op_type = "Mul";
    back.inputs = {constant("_scales", std::move(shape), scales, dtype)};
    return back;
  }

  /// HardSigmoid is Clip(alpha x + beta, 0, 1): this is alpha x + beta.
  Node slope(const Node& gate, Scales scales, DType dtype) {
    const auto [alpha, beta] = plan::hard_slope(gate);
    const Scales offset(scales.size(), beta);
    for (double& each : scales) each *= alpha;
    const auto channels = static_cast<std::int64_t>(scales.size());
    Node back;
    back.op_type = "Conv";
    back.set("group", channels);
    back.set("kernel_shape", std::vector<std::int64_t>{1, 1});
    back.inputs = {constant("_slope", {channels, 1, 1, 1}, scales, dtype),
                   constant("_offset", {channels}, offset, dtype)};
    return back;
  }

  void become_clip(Node& gate, DType dtype) {
    gate.op_type = "Clip";
    gate.attributes.clear();
    gate.inputs.push_back(constant("_closed", {}, {0.0}, dtype));
    gate.inputs.push_back(constant("_open", {}, {1.0}, dtype));
  }

  Graph& graph_;
  bool layers_allowed_;
  std::string stem_;  ///< of the names around one gate
  std::vector<std::string> float_nodes_;
};

}  // namespace

std::vector<std::string> rescale_gates(Model& model, std::vector<ScaledGate> gates,
                                       bool by_channel) {
  // From the last on, so that node ids before it stay what they are.
  std::ranges::sort(gates, std::greater(), &ScaledGate::gate);
  Gates writer(model, by_channel);
  for (const ScaledGate& each : gates) writer.rescale(each);
  compact(model.graph, {});
  return std::move(writer).float_nodes();
}

}  // namespace quench::tune
