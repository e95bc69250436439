// SPDX-License-Identifier: Apache-2.0
// Writes a plan into a graph as QuantizeLinear and DequantizeLinear: one Q a value, a DQ of its own
// for every reader, integer constants for weights and biases.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/format.h"
#include "ir/noted_scale.h"
#include "lower/hard_gate.h"
#include "lower/params.h"
#include "quench/lower.h"

namespace quench {
namespace lower {
namespace {

constexpr std::int64_t kPerChannelOpset = 13;
constexpr std::int64_t kSixteenBitOpset = 21;

/// The values that hold a scale and a zero point.
struct StoredParams {
  ValueId scale = kNoValue;
  ValueId zero_point = kNoValue;
  const QuantParams* params = nullptr;
};

/// The integers of a weight that is not in memory are not there either.
Tensor integers_of(const Tensor& weight, const QuantParams& params) {
  if (!weight.is_stored()) return quantize_tensor(weight, params);
  return Tensor::made(params.spec.dtype(), weight.shape(),
                      [weight, params] { return quantize_tensor(weight, params); });
}

class Writer {
 public:
  Writer(Model& model, const QuantPlan& plan, const QuantSolution& solution)
      : graph_(model.graph), plan_(plan), solution_(solution), uses_(model.graph) {
    for (const Node& node : graph_.nodes) {
      node_names_.insert(node.name);
      for (std::string& name : captured_names(node)) captured_.insert(std::move(name));
    }
    for (const WeightPlan& weight : plan.weights) weights_.insert(weight.key());
  }

  void run() {
    const std::vector<Node> nodes = std::move(graph_.nodes);
    num_planned_ = graph_.values().size();
    for (const ValueId input : graph_.inputs) {
      if (!plan_.round_for_layers_only && has_params(input)) quantize(input, input);
    }
    for (const Node& node : nodes) write(node);
    graph_.nodes = std::move(written_);
    drop_replaced_inputs();
    compact(graph_, {});
  }

 private:
  bool has_params(ValueId id) const {
    return id != kNoValue && static_cast<std::size_t>(id) < num_planned_ &&
           lower::has_params(plan_, graph_[id].name);
  }

  void write(Node node) {
    if (plan_.integer_clip && write_gate(node)) return;
    const std::string name = output_name(graph_, node);
    const bool bias = plan_.of(graph_, node).quantize_bias && node.input(2) != kNoValue;
    // Its input is dequantised below: this is the planned one.
    const std::string input = bias ? graph_[node.inputs[0]].name : "";
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId read = node.inputs[i];
      if (weights_.contains({name, i})) {
        node.inputs[i] = weight({name, i}, read);
      } else if (has_params(read)) {
        node.inputs[i] = rounds(node) ? dequantize(read) : noted(read);
      }
    }
    if (bias) write_bias({name, 1}, value_params(plan_, solution_, input), node);
    if (plan_.round_for_layers_only) {
      written_.push_back(std::move(node));
      return;
    }
    std::vector<std::pair<ValueId, ValueId>> made;  // the planned value, and who now holds it
    for (ValueId& output : node.outputs) {
      if (!has_params(output)) continue;
      const ValueId planned = output;
      if (must_keep_name(planned)) {
        output = graph_.add_fresh(graph_[planned].name + "_float", graph_[planned].type);
      }
      made.emplace_back(planned, output);
    }
    written_.push_back(std::move(node));
    for (const auto& [planned, holder] : made) {
      quantize(planned, holder);
      if (planned != holder) dequantize_into(planned, planned);
    }
  }

  bool rounds(const Node& node) const {
    return !plan_.round_for_layers_only || plan_.of(graph_, node).kind == NodePlan::Kind::Integer;
  }

  /// The value as it is, behind a node that only says its scale.
  ValueId noted(ValueId planned) {
    const auto known = noted_.find(planned);
    if (known != noted_.end()) return known->second;
    const std::string name = graph_[planned].name;
    const ValueId same = graph_.add_fresh(name + "_noted");
    emit("Identity", name, {planned}, same);
    written_.back().set(kNotedScale, stored_of(planned).params->scale[0]);
    return noted_[planned] = same;
  }

  /// A HardSigmoid that only clips its input's steps needs no float.
  bool write_gate(const Node& node) {
    if (node.op_type != "HardSigmoid" || !has_params(node.inputs[0]) ||
        !has_params(node.outputs[0]) || must_keep_name(node.outputs[0])) {
      return false;
    }
    const QuantParams& x = *stored_of(node.inputs[0]).params;
    const auto top = clip_of_gate(node, x, *stored_of(node.outputs[0]).params);
    if (!top) return false;
    const std::string gate = graph_[node.outputs[0]].name;
    const auto bound = [&](const char* what, std::int64_t step) {
      const Tensor number = Tensor::scalar(static_cast<std::int32_t>(step));
      return graph_.add_constant(gate + what, convert(number, x.spec.dtype()));
    };
    const ValueId clipped = graph_.add_fresh(gate + "_Clip_Output");
    emit("Clip", gate,
         {integers_.at(node.inputs[0]), bound("_least", x.spec.q_min()), bound("_greatest", *top)},
         clipped);
    integers_[node.outputs[0]] = clipped;
    return true;
  }

  /// Whoever asks for the value by name gets what the integers stand for.
  bool must_keep_name(ValueId id) const {
    return uses_.is_output[static_cast<std::size_t>(id)] || captured_.contains(graph_[id].name);
  }

  std::string fresh_node_name(const std::string& stem) {
    std::string name = stem;
    for (int suffix = 1; !node_names_.insert(name).second; ++suffix) {
      name = format("{}_{}", stem, suffix);
    }
    return name;
  }

  void emit(std::string op, const std::string& stem, std::vector<ValueId> inputs, ValueId output,
            int axis = -1) {
    Node node;
    node.name = fresh_node_name(format("{}_{}", stem, op));
    node.op_type = std::move(op);
    node.inputs = std::move(inputs);
    node.outputs = {output};
    if (axis >= 0) node.set("axis", static_cast<std::int64_t>(axis));
    written_.push_back(std::move(node));
  }

  const StoredParams& stored_of(ValueId id) {
    const std::string& name = graph_[id].name;
    const ValuePlan& value = plan_.values.at(name);
    const bool shared = value.kind == ValuePlan::Kind::SharedWith;
    const std::string root = shared ? value.source : name;
    const QuantParams& params = value_params(plan_, solution_, root);
    const auto [found, fresh] = stored_.try_emplace(root);
    if (fresh) {
      found->second = {.scale = graph_.add_constant(root + "_scale", scale_tensor(params)),
                       .zero_point = graph_.add_constant(root + "_zero_point", zero_tensor(params)),
                       .params = &params};
    }
    return found->second;
  }

  void quantize(ValueId planned, ValueId holder) {
    const std::string name = graph_[planned].name;
    const StoredParams stored = stored_of(planned);
    const ValueId integers = graph_.add_fresh(name + "_QuantizeLinear_Output");
    emit("QuantizeLinear", name,
         {clipped(holder, name, *stored.params), stored.scale, stored.zero_point}, integers);
    integers_[planned] = integers;
  }

  /// QuantizeLinear saturates at the ends of the type: narrower scales are cut before it.
  ValueId clipped(ValueId value, const std::string& name, const QuantParams& params) {
    const DType dtype = params.spec.dtype();
    if (params.spec.bits == info(dtype).bits && !params.spec.narrow) return value;
    const auto real = [&](std::int64_t step) {
      return static_cast<float>(step - params.zero_point[0]) * params.scale[0];
    };
    const ValueId low =
        graph_.add_constant(name + "_least", Tensor::scalar(real(params.spec.q_min())));
    const ValueId high =
        graph_.add_constant(name + "_greatest", Tensor::scalar(real(params.spec.q_max())));
    const ValueId cut = graph_.add_fresh(name + "_Clip_Output");
    emit("Clip", name, {value, low, high}, cut);
    return cut;
  }

  void dequantize_into(ValueId planned, ValueId output) {
    const StoredParams stored = stored_of(planned);
    emit("DequantizeLinear", graph_[planned].name,
         {integers_.at(planned), stored.scale, stored.zero_point}, output);
  }

  ValueId dequantize(ValueId planned) {
    if (!integers_.contains(planned)) quantize(planned, planned);
    const ValueId output = graph_.add_fresh(graph_[planned].name + "_DequantizeLinear_Output");
    dequantize_into(planned, output);
    return output;
  }

  struct Weight {
    ValueId value;
    QuantParams params;
    ValueId integers;
    StoredParams stored;
  };

  /// A constant is quantised once for each scale that is asked of it.
  const Weight& quantized(ValueId value, const QuantParams& params) {
    const auto known = std::ranges::find_if(quantized_, [&](const Weight& each) {
      return each.value == value && each.params == params;
    });
    if (known != quantized_.end()) return *known;
    const std::string name = graph_[value].name;
    Weight weight{.value = value, .params = params, .integers = kNoValue};
    weight.integers =
        graph_.add_constant(name + "_quantized", integers_of(*graph_.constant(value), params));
    if (graph_[value].form == ConstantForm::External) {
      graph_[weight.integers].form = ConstantForm::External;
    }
    weight.stored.scale = graph_.add_constant(name + "_scale", scale_tensor(params));
    weight.stored.zero_point = graph_.add_constant(name + "_zero_point", zero_tensor(params));
    quantized_.push_back(std::move(weight));
    return quantized_.back();
  }

  ValueId weight(const WeightKey& key, ValueId value) {
    const QuantParams& params = weight_params(solution_, key);
    const Weight& made = quantized(value, params);
    const std::string name = graph_[value].name;
    const ValueId output = graph_.add_fresh(name + "_DequantizeLinear_Output");
    emit("DequantizeLinear", name, {made.integers, made.stored.scale, made.stored.zero_point},
         output, params.spec.axis);
    return output;
  }

  /// int32, on the scale of the products that the kernel adds it to.
  void write_bias(const WeightKey& key, const QuantParams& input, Node& node) {
    const ValueId value = node.inputs[2];
    const QuantParams& weight = weight_params(solution_, key);
    std::vector<float> scale = weight.scale;
    for (float& each : scale) each *= input.scale[0];
    std::vector<float> bias = to_float(*graph_.constant(value));
    if (bias.size() == 1) bias.resize(scale.size(), bias[0]);
    const bool by_channel = scale.size() == bias.size() && weight.spec.axis >= 0;
    Shape shape = {static_cast<std::int64_t>(bias.size())};
    Tensor integers = Tensor::zeros(DType::Int32, shape);
    const auto data = integers.mutable_data<std::int32_t>();
    for (std::size_t i = 0; i < bias.size(); ++i) {
      data[i] =
          to_int32(static_cast<double>(bias[i]) / static_cast<double>(scale[by_channel ? i : 0]));
    }
    const std::string name = graph_[value].name;
    if (!by_channel) shape.clear();
    const ValueId output = graph_.add_fresh(name + "_DequantizeLinear_Output");
    const ValueId scale_id = graph_.add_constant(name + "_scale", Tensor::of<float>(shape, scale));
    const ValueId zero_id =
        graph_.add_constant(name + "_zero_point", Tensor::zeros(DType::Int32, shape));
    emit("DequantizeLinear", name,
         {graph_.add_constant(name + "_quantized", std::move(integers)), scale_id, zero_id}, output,
         by_channel ? 0 : -1);
    node.inputs[2] = output;
  }

  static std::int32_t to_int32(double value) {
    constexpr auto kMax = static_cast<double>(std::numeric_limits<std::int32_t>::max());
    return static_cast<std::int32_t>(std::clamp(std::nearbyint(value), -kMax, kMax));
  }

  /// Constants that old exporters list as inputs, and that nothing reads any more.
  void drop_replaced_inputs() {
    const Uses now(graph_);
    std::erase_if(graph_.inputs, [&](ValueId id) {
      const auto index = static_cast<std::size_t>(id);
      return graph_.constant(id) != nullptr && now.consumers[index].empty() &&
             !now.is_output[index];
    });
  }

  Graph& graph_;
  const QuantPlan& plan_;
  const QuantSolution& solution_;
  Uses uses_;  ///< of the graph as it was
  std::size_t num_planned_ = 0;
  std::set<std::string> node_names_;
  std::set<std::string> captured_;
  std::set<WeightKey> weights_;
  std::map<std::string, StoredParams> stored_;
  std::map<ValueId, ValueId> integers_;
  std::map<ValueId, ValueId> noted_;
  std::vector<Weight> quantized_;
  std::vector<Node> written_;
};

}  // namespace
}  // namespace lower

std::int64_t needed_opset(const QuantPlan& plan) {
  const auto wide = [](const QuantSpec& spec) { return info(spec.dtype()).bits == 16; };
  const bool sixteen =
      std::ranges::any_of(plan.weights, [&](const auto& each) { return wide(each.spec); }) ||
      std::ranges::any_of(plan.values, [&](const auto& each) {
        return each.second.kind != ValuePlan::Kind::Float && wide(each.second.spec);
      });
  return sixteen ? lower::kSixteenBitOpset : lower::kPerChannelOpset;
}

Model insert_qdq(const Model& model, const QuantPlan& plan, const QuantSolution& solution) {
  QuantSolution legalized = solution;
  legalize(model, plan, legalized);
  Model result = model;
  lower::Writer(result, plan, legalized).run();
  const std::int64_t opset = needed_opset(plan);
  if (result.opset() < opset) lift_opset(result, opset);
  infer_types(result);
  verify(result);
  return result;
}

}  // namespace quench
