// SPDX-License-Identifier: Apache-2.0
// Specs for what integer nodes read and make.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "plan/edges.h"
#include "plan/planner.h"

namespace quench::plan {
namespace {

constexpr std::string_view kChannelWise = "channel_wise_";
/// What the first and the last layers read, and what the model gives, keeps 8 bits where
/// activations have 4 or fewer: pixels come with 8, and no layer can make up for what is lost
/// there. So do the published networks of 4 bits (LSQ, PACT, BRECQ). Who asks for 7 wants room for
/// sums everywhere.
constexpr int kEdgeBits = 8;
constexpr int kFewBits = 4;

class Placer {
 public:
  Placer(const Job& job, std::vector<NodePlan>& nodes, QuantPlan& plan)
      : job_(job), nodes_(nodes), plan_(plan), edges_(edge_values(job.graph, job.uses)) {}

  void run() {
    for (NodeId id = 0; id < count(); ++id) {
      if (node_plan(id).kind == NodePlan::Kind::Integer) place_inputs(id);
    }
    for (NodeId id = 0; id < count(); ++id) {
      if (node_plan(id).kind == NodePlan::Kind::Integer) place_output(id);
    }
    for (NodeId id = 0; id < count(); ++id) {
      if (node_plan(id).kind == NodePlan::Kind::PassThrough) place_mover(id);
    }
    scale_unasked();
    if (job_.target.shared_concat) share_concats();
    share();
    finish_activations();
  }

 private:
  NodePlan& node_plan(NodeId id) { return nodes_[static_cast<std::size_t>(id)]; }
  NodeId count() const { return static_cast<NodeId>(nodes_.size()); }
  const std::string& name(ValueId id) const { return job_.graph[id].name; }

  QuantSpec activation_spec(const QuantRule& rule) const {
    QuantSpec spec;
    spec.bits = rule.activation_bits.value_or(8);
    spec.is_signed = job_.target.activation_signed;
    spec.symmetric = job_.target.activation_symmetric;
    spec.observer = rule.activation_observer.value_or(job_.config.default_activation_observer);
    spec.hist_percent = job_.config.hist_percent;
    spec.bins = job_.config.bins;
    return spec;
  }

  QuantSpec weight_spec(const Node& node, std::size_t input, const QuantRule& rule) const {
    const Tensor& weight = *job_.graph.constant(node.inputs[input]);
    if (!is_layer(node) || input != 1) {
      // A constant among activations has a spec like theirs: kernels want equal types.
      QuantSpec spec = activation_spec(rule);
      spec.observer = spec.symmetric ? "abs_max" : "min_max";
      return spec;
    }
    QuantSpec spec;
    spec.bits = rule.weight_bits.value_or(8);
    spec.narrow = job_.target.narrow_weights;
    spec.observer = rule.weight_observer.value_or(job_.config.default_weight_observer);
    const bool square = job_.target.square_per_tensor && weight.rank() == 2 &&
                        weight.shape()[0] == weight.shape()[1];
    const bool by_channel =
        !square && rule.per_channel.value_or(spec.observer.starts_with(kChannelWise));
    if (by_channel && job_.target.per_channel) spec.axis = channel_axis(node, input, weight);
    if (by_channel && job_.target.transposed_depthwise && spec.axis < 0) {
      spec.axis = depthwise_axis(node, weight);
    }
    if (spec.axis < 0 && spec.observer.starts_with(kChannelWise)) {
      spec.observer.erase(0, kChannelWise.size());
    }
    return spec;
  }

  void need(ValueId id, const QuantRule& rule) {
    ValuePlan value{.kind = ValuePlan::Kind::Observed, .spec = activation_spec(rule)};
    const bool asked_for = rule.activation_bits != job_.config.global.activation_bits;
    if (edges_[static_cast<std::size_t>(id)] && value.spec.bits <= kFewBits && !asked_for) {
      value.spec.bits = kEdgeBits;
    }
    const auto own = job_.config.value_observers.find(name(id));
    if (own != job_.config.value_observers.end() && !rule.activation_observer) {
      value.spec.observer = own->second;
    }
    plan_.values.try_emplace(name(id), std::move(value));
  }

  /// The input of a residual Add that the layer before it hands over unquantised, or kNoValue.
  ValueId residual(const Node& node) const {
    if (!job_.target.residual_in_float || node.op_type != "Add") return kNoValue;
    for (const ValueId input : node.inputs) {
      const NodeId maker = job_.producer(input);
      if (maker >= 0 && is_layer(job_.node(maker)) && job_.uses.only_consumer(input) >= 0) {
        return input;
      }
    }
    return kNoValue;
  }

  /// A layer's weight and bias must be numbers that integers can stand for.
  void check_finite(const Node& node) const {
    for (const std::size_t i : {1U, 2U}) {
      const Tensor* constant = is_layer(node) ? job_.graph.constant(node.input(i)) : nullptr;
      if (constant == nullptr || constant->dtype() != DType::Float32) continue;
      const Tensor held = constant->held();
      if (std::ranges::all_of(held.data<float>(), [](float v) { return std::isfinite(v); })) {
        held.drop();
        continue;
      }
      fail(ErrorKind::BadModel,
           "{} '{}' of the {}: it holds NaN or infinity, which no integer stands for",
           i == 1 ? "weight" : "bias", name(node.input(i)), label(job_.graph, node));
    }
  }

  void place_inputs(NodeId id) {
    const Node& node = job_.node(id);
    check_finite(node);
    const QuantRule rule = job_.rule(node);
    const ValueId in_float = residual(node);
    for (const std::size_t i : data_inputs(node)) {
      if (job_.graph.constant(node.inputs[i]) != nullptr) {
        if (is_layer(node) && leaves_weight(rule)) continue;
        plan_.weights.push_back(
            {.node = job_.name(id), .input = i, .spec = weight_spec(node, i, rule)});
      } else if (node.inputs[i] != in_float) {
        need(node.inputs[i], rule);
      }
    }
  }

  NodeId absorbed(NodeId id) const {
    const NodeId reader = job_.uses.only_consumer(job_.node(id).outputs[0]);
    if (reader < 0) return -1;
    const std::string& host = nodes_[static_cast<std::size_t>(reader)].absorbed_by;
    return host == job_.name(id) ? reader : -1;
  }

  void place_output(NodeId id) {
    const Node& node = job_.node(id);
    const TargetOp* op = find_op(job_.target, node.op_type);
    // Processes sum what each has: rounding their parts would add up, and a scale of the sum fits
    // none of them.
    if (job_.parallel.kind(node) == passes::kRowParallel) return;
    if (ops::is_convolution(node)) place_fused(node);
    if (!job_.target.quantize_outputs || op->float_output) return;
    if (op->spans) return fix(node, *op->spans);
    const NodeId activation = absorbed(id);
    need(activation < 0 ? node.outputs[0] : job_.node(activation).outputs[0], job_.rule(node));
  }

  void place_fused(const Node& node) {
    const NodeId reader = job_.uses.only_consumer(node.outputs[0]);
    if (reader < 0 || job_.node(reader).op_type != job_.target.scaled_activation) return;
    const ValueId result = job_.node(reader).outputs[0];
    const bool leaves = job_.uses.is_output[static_cast<std::size_t>(result)];
    if (!leaves) need(result, job_.rule(node));
  }

  /// Of Softmax, shares of one: signal processors know no other scale, and ONNX Runtime's
  /// QLinearSoftmax, which it also makes of Q/DQ, overflows on finer ones and cuts off what is no
  /// power of two.
  void fix(const Node& node, const Range& spans) {
    ValuePlan value{.kind = ValuePlan::Kind::Fixed, .spec = activation_spec(job_.rule(node))};
    const double step = (spans.max - spans.min) / std::exp2(value.spec.bits);
    value.fixed = {.min = spans.min, .max = spans.max - step};
    plan_.values[name(node.outputs[0])] = std::move(value);
  }

  void place_mover(NodeId id) {
    const Node& node = job_.node(id);
    const QuantRule rule = job_.rule(node);
    need(node.inputs[0], rule);
    for (const ValueId output : node.outputs) {
      if (output == kNoValue) continue;
      need(output, rule);
      link(name(output), name(node.inputs[0]));
    }
  }

  /// Float numbers that are computed, and not by a DequantizeLinear of the model's own.
  bool may_have_scale(ValueId id) const {
    const NodeId maker = job_.producer(id);
    return job_.graph.constant(id) == nullptr && maybe_float(job_.graph, id) &&
           (maker < 0 || job_.node(maker).op_type != "DequantizeLinear");
  }

  /// Nodes left in float that the runtime runs on integers whenever it finds a scale for their
  /// result: its own, or that of what only moves it.
  void scale_unasked() {
    std::vector<bool> moved(job_.graph.values().size(), false);
    const auto has_scale = [&](ValueId id) {
      return id != kNoValue &&
             (moved[static_cast<std::size_t>(id)] || plan_.values.contains(name(id)));
    };
    for (NodeId id = count() - 1; id >= 0; --id) {  // readers before makers
      const Node& node = job_.node(id);
      const TargetOp* op = find_op(job_.target, node.op_type);
      const ValueId input = node.input(0);
      if (op == nullptr || input == kNoValue || node.outputs.empty()) continue;
      if (!has_scale(node.outputs[0])) continue;
      if (op->kind == NodePlan::Kind::PassThrough) moved[static_cast<std::size_t>(input)] = true;
      if (op->kind != NodePlan::Kind::Integer || op->reason.empty()) continue;
      if (node_plan(id).kind != NodePlan::Kind::Float || !node.domain.empty()) continue;
      if (may_have_scale(input)) need(input, job_.rule(node));
    }
  }

  /// The output holds what the inputs hold, so its range is theirs together.
  void share_concats() {
    for (NodeId id = 0; id < count(); ++id) {
      const Node& node = job_.node(id);
      if (node.op_type != "Concat" || node_plan(id).kind != NodePlan::Kind::Integer) continue;
      need(node.outputs[0], job_.rule(node));
      for (const ValueId input : node.inputs) {
        if (job_.graph.constant(input) == nullptr) link(name(input), name(node.outputs[0]));
      }
    }
  }

  const std::string& root(const std::string& value) const {
    const std::string* at = &value;
    for (auto next = links_.find(*at); next != links_.end(); next = links_.find(*at)) {
      at = &next->second;
    }
    return *at;
  }

  void link(const std::string& from, const std::string& to) {
    const std::string& start = root(from);
    const std::string& end = root(to);
    if (start != end) links_.emplace(start, end);
  }

  void share() {
    for (const auto& [value, next] : links_) {
      int& bits = plan_.values.at(root(value)).spec.bits;
      bits = std::max(bits, plan_.values.at(value).spec.bits);
    }
    for (const auto& [value, next] : links_) {
      ValuePlan& shared = plan_.values.at(value);
      shared.kind = ValuePlan::Kind::SharedWith;
      shared.source = root(value);
      shared.spec = plan_.values.at(shared.source).spec;
    }
  }

  /// Activations whose result has a scale vanish into it; the others stay.
  void finish_activations() {
    for (NodeId id = 0; id < count(); ++id) {
      NodePlan& activation = node_plan(id);
      if (activation.absorbed_by.empty()) continue;
      const Node& node = job_.node(id);
      const auto value = plan_.values.find(name(node.outputs[0]));
      if (value == plan_.values.end() || value->second.kind != ValuePlan::Kind::Observed) {
        activation.absorbed_by.clear();
        continue;
      }
      value->second.bounds = activation_bounds(job_.graph, node, job_.model.opset());
      activation.kind = NodePlan::Kind::Integer;
      const NodeId host = job_.producer(node.inputs[0]);
      activation.reason = format("runs inside the {} before it", job_.node(host).op_type);
      plan_.values[name(node.inputs[0])] =
          ValuePlan{.reason = format("only the {} behind it reads it", node.op_type)};
    }
  }

  const Job& job_;
  std::vector<NodePlan>& nodes_;
  QuantPlan& plan_;
  std::vector<bool> edges_;                   ///< by value
  std::map<std::string, std::string> links_;  ///< from a value to one whose parameters it has
};

}  // namespace

void place_specs(const Job& job, std::vector<NodePlan>& nodes, QuantPlan& plan) {
  Placer(job, nodes, plan).run();
}

}  // namespace quench::plan
