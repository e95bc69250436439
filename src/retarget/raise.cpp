// SPDX-License-Identifier: Apache-2.0
// Walks the graph once, with the float twin of each integer value at hand.
#include "retarget/raise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>

#include "base/format.h"
#include "formats/foreign.h"
#include "lower/params.h"
#include "passes/run.h"
#include "plan/facts.h"
#include "plan/qdq.h"
#include "quant/dequantize_linear.h"
#include "retarget/params_of.h"
#include "retarget/split_dynamic.h"
#include "retarget/split_qoperators.h"

namespace quench::retargeting {
namespace {

/// What integers stand for.
struct Twin {
  ValueId real = kNoValue;
  QuantParams params;
};

/// Nodes whose result may be negative and that exporters put an activation behind.
bool takes_activation(const Node& node) {
  static constexpr std::array<std::string_view, 3> kOthers = {"Add", "Sub", "BatchNormalization"};
  return ops::is_layer(node) || std::ranges::find(kOthers, node.op_type) != kOthers.end();
}

/// Hands on numbers that it reads, whichever these are: the same as integers.
bool picks(const Node& node) {
  static constexpr std::array<std::string_view, 4> kOthers = {"MaxPool", "ReduceMax", "ReduceMin",
                                                              "Concat"};
  return ops::is(node, ops::kMoves) || std::ranges::find(kOthers, node.op_type) != kOthers.end();
}

class Raiser {
 public:
  explicit Raiser(Raised& raised)
      : raised_(raised), graph_(raised.model.graph), uses_(raised.model.graph) {
    for (const Node& node : graph_.nodes) {
      for (std::string& name : captured_names(node)) captured_.insert(std::move(name));
    }
  }

  void run() {
    nodes_ = std::move(graph_.nodes);
    open_inputs();
    for (const Node& node : nodes_) raise(node);
    close_outputs();
    graph_.nodes = std::move(written_);
    compact(graph_, {});
  }

 private:
  const std::string& name(ValueId id) const { return graph_[id].name; }
  const Node* maker(ValueId id) const {
    const auto index = static_cast<std::size_t>(id);
    if (id == kNoValue || index >= uses_.producer.size()) return nullptr;
    const NodeId made = uses_.producer[index];
    return made < 0 ? nullptr : &nodes_[static_cast<std::size_t>(made)];
  }
  bool keeps_name(ValueId id) const {
    return uses_.is_output[static_cast<std::size_t>(id)] || captured_.contains(name(id));
  }

  void raise(Node node) {
    for (ValueId& input : node.inputs) {
      const auto found = replaced_.find(input);
      if (found != replaced_.end()) input = found->second;
    }
    if (plan::is_q(&node) && raise_q(node)) return;
    if (plan::is_dq(&node) && raise_dq(node)) return;
    if (raise_mover(node) || raise_clip(node)) return;
    for (const ValueId input : node.inputs) materialize(input);
    if (node.op_type == "Transpose") follow_weight(node);
    if (node.foreign == kHalvesAway) node.foreign.clear();  // how the new runtime rounds is its own
    written_.push_back(std::move(node));
  }

  /// Integer inputs become what the DequantizeLinear behind them makes of them.
  void open_inputs() {
    for (const ValueId input : graph_.inputs) {
      if (!spec_of(graph_[input].type.dtype)) continue;
      const auto params = params_behind(input);
      if (!params || params->spec.axis >= 0) continue;
      raised_.edges.push_back({.name = name(input), .params = *params});
      graph_[input].type.dtype = DType::Float32;
      twins_[input] = {.real = input, .params = *params};
      note(input, *params);
    }
  }

  /// The scale that integers are read with, maybe after they were moved.
  std::optional<QuantParams> params_behind(ValueId integers) const {
    constexpr int kMostSteps = 8;
    for (int step = 0; step < kMostSteps; ++step) {
      const auto& readers = uses_.consumers[static_cast<std::size_t>(integers)];
      ValueId moved = kNoValue;
      for (const NodeId id : readers) {
        const Node& node = nodes_[static_cast<std::size_t>(id)];
        if (plan::is_dq(&node)) return params_of(graph_, node);
        if (ops::is(node, ops::kMoves) && node.input(0) == integers) moved = node.outputs[0];
      }
      if (moved == kNoValue) return std::nullopt;
      integers = moved;
    }
    return std::nullopt;
  }

  /// Integer outputs become what they stand for, under their name.
  void close_outputs() {
    for (const ValueId output : graph_.outputs) {
      const auto twin = twins_.find(output);
      if (twin == twins_.end() || made_.contains(output)) continue;
      if (std::ranges::count(graph_.inputs, output) != 0) continue;
      raised_.edges.push_back({name(output), twin->second.params, true});
      graph_[output].type.dtype = DType::Float32;
      emit("Identity", {twin->second.real}, output);
      note(output, twin->second.params);
    }
  }

  void note(ValueId real, const QuantParams& params) {
    const auto [found, fresh] = raised_.values.try_emplace(name(real), params);
    if (!fresh && !same_integers(found->second, params)) ++raised_.requantised;
  }

  ValueId emit(std::string_view op, std::vector<ValueId> inputs, ValueId output) {
    Node node;
    node.op_type = op;
    node.name = format("{}_{}", name(output), op);
    node.inputs = std::move(inputs);
    node.outputs = {output};
    written_.push_back(std::move(node));
    return output;
  }

  ValueId fresh(const std::string& stem, ValueId like) {
    ValueType type = graph_[like].type;
    type.dtype = DType::Float32;
    return graph_.add_fresh(stem, std::move(type));
  }

  bool raise_q(const Node& node) {
    auto params = params_of(graph_, node);
    const ValueId in = node.inputs[0];
    const ValueId out = node.outputs[0];
    if (!params) return false;
    if (const Tensor* constant = graph_.constant(in)) {
      const Tensor scale = lower::scale_tensor(*params);
      const bool known = constant->dtype() == DType::Float32;
      if (!known || !fits(constant->shape(), scale, params->spec.axis)) return false;
      twins_[out] = {.real = weight(name(in), fake_quantize(*constant, *params), *params),
                     .params = *params};
      return true;
    }
    const ValueId real = without_cut(in, *params);
    twins_[out] = {.real = with_activation(real, *params), .params = *params};
    note(twins_[out].real, *params);
    return true;
  }

  /// A Clip that keeps a quantiser within fewer steps than its type has belongs to the scale.
  ValueId without_cut(ValueId in, QuantParams& params) {
    const Node* clip = maker(in);
    if (clip == nullptr || clip->op_type != "Clip" || params.spec.axis >= 0) return in;
    if (written_.empty() || written_.back().outputs != clip->outputs ||
        uses_.only_consumer(in) < 0) {
      return in;
    }
    const auto bounds = plan::activation_bounds(graph_, *clip, raised_.model.opset());
    if (!bounds) return in;
    const auto scale = static_cast<double>(params.scale[0]);
    const double low = bounds->min / scale + params.zero_point[0];
    const double high = bounds->max / scale + params.zero_point[0];
    for (int bits = params.spec.bits; bits >= 2; --bits) {
      for (const bool narrow : {false, true}) {
        QuantSpec spec = params.spec;
        spec.bits = bits;
        spec.narrow = narrow;
        constexpr double kNear = 1e-3;
        if (std::abs(low - static_cast<double>(spec.q_min())) > kNear ||
            std::abs(high - static_cast<double>(spec.q_max())) > kNear) {
          continue;
        }
        params.spec = spec;
        const ValueId real = written_.back().inputs[0];
        written_.pop_back();
        return real;
      }
    }
    return in;
  }

  /// A scale that ends at zero, or at zero and six, stands for the activation that was there. A
  /// target whose scales are symmetric, or that leaves this value in float, needs the node.
  ValueId with_activation(ValueId real, const QuantParams& params) {
    const Node* before = maker(real);
    const bool ends = params.spec.axis < 0 && params.zero_point[0] == params.spec.q_min();
    if (before == nullptr || !takes_activation(*before) || !ends) return real;
    const auto known = activations_.find(real);
    if (known != activations_.end()) return known->second;
    constexpr double kSix = 6;
    constexpr double kNear = 0.01;
    const double top = range_of(params).max;
    const bool six = std::abs(top - kSix) < kNear * kSix;
    const ValueId result = fresh(name(real) + (six ? "_clip" : "_relu"), real);
    if (six) {
      emit("Clip",
           {real, graph_.add_constant("zero", Tensor::scalar(0.0F)),
            graph_.add_constant("six", Tensor::scalar(6.0F))},
           result);
    } else {
      emit("Relu", {real}, result);
    }
    raised_.activations.insert(name(result));
    return activations_[real] = result;
  }

  ValueId weight(const std::string& stem, Tensor floats, const QuantParams& params) {
    const ValueId id = graph_.add_constant(stem + "_float", std::move(floats));
    raised_.weights[name(id)] = params;
    return id;
  }

  bool raise_dq(const Node& node) {
    const ValueId in = node.inputs[0];
    const ValueId out = node.outputs[0];
    if (graph_.constant(in) != nullptr) return raise_constant(node);
    const auto twin = twins_.find(in);
    const auto params = params_of(graph_, node);
    const bool same = twin != twins_.end() && params && same_integers(*params, twin->second.params);
    const bool one = twin != twins_.end() && params && params->spec.axis < 0 &&
                     twin->second.params.spec.axis < 0;
    if (!one && !(same && params->spec.axis == twin->second.params.spec.axis)) {
      materialize(in);
      return false;
    }
    hand_on(same ? twin->second.real : reread(twin->second, *params, out), out);
    return true;
  }

  void hand_on(ValueId real, ValueId out) {
    if (!keeps_name(out)) {
      replaced_[out] = real;
      return;
    }
    emit("Identity", {real}, out);
    const auto known = raised_.values.find(name(real));
    if (known != raised_.values.end()) raised_.values.try_emplace(name(out), known->second);
  }

  /// Integers that are read with another scale than they were made with are scaled and shifted.
  ValueId reread(const Twin& twin, const QuantParams& params, ValueId out) {
    const auto ratio = params.scale[0] / twin.params.scale[0];
    const auto shift =
        static_cast<float>(twin.params.zero_point[0] - params.zero_point[0]) * params.scale[0];
    ValueId real = twin.real;
    if (ratio != 1) {
      const ValueId factor = graph_.add_constant("ratio", Tensor::scalar(ratio));
      real = emit("Mul", {real, factor}, fresh(name(out) + "_scaled", out));
    }
    if (shift != 0) {
      const ValueId term = graph_.add_constant("shift", Tensor::scalar(shift));
      real = emit("Add", {real, term}, fresh(name(out) + "_shifted", out));
    }
    note(real, params);
    return real;
  }

  /// One scale for all, or one for each index of the axis; blocks stay as they are.
  static bool fits(const Shape& shape, const Tensor& scale, std::int64_t axis) {
    if (scale.size() == 1) return true;
    return scale.rank() == 1 && axis >= 0 && axis < std::ssize(shape) &&
           shape[static_cast<std::size_t>(axis)] == scale.size();
  }

  bool raise_constant(const Node& node) {
    const Tensor& integers = *graph_.constant(node.inputs[0]);
    const Tensor* scale = graph_.constant(node.input(1));
    const Tensor* zero = graph_.constant(node.input(2));
    if (scale == nullptr || (zero == nullptr && node.input(2) != kNoValue)) return false;
    const Shape shape = integers.shape();
    const std::string stem = name(node.inputs[0]);
    std::int64_t axis = node.get_int("axis", 1);
    if (axis < 0) axis += std::ssize(shape);
    const bool sound = zero == nullptr || zero->size() == scale->size() || zero->size() == 1;
    if (!sound || !fits(shape, *scale, axis)) return false;
    Tensor floats =
        Tensor::of<float>(shape, quant::dequantize_linear(integers, *scale, zero, axis));
    const auto params = params_of(graph_, node);
    const ValueId id = params ? weight(stem, std::move(floats), *params)
                              : graph_.add_constant(stem + "_float", std::move(floats));
    hand_on(id, node.outputs[0]);
    return true;
  }

  /// What only picks integers, or joins those of one scale, does the same to floats.
  bool raise_mover(Node& node) {
    const bool joins = node.op_type == "Concat";
    if (!picks(node)) return false;
    const std::size_t count = joins ? node.inputs.size() : 1;
    std::optional<QuantParams> params;
    for (std::size_t i = 0; i < count; ++i) {
      const auto twin = twins_.find(node.input(i));
      if (twin == twins_.end() || twin->second.params.spec.axis >= 0) return false;
      if (params && !same_integers(*params, twin->second.params)) return false;
      params = twin->second.params;
    }
    if (!params) return false;
    for (std::size_t i = 0; i < count; ++i) node.inputs[i] = twins_.at(node.inputs[i]).real;
    for (std::size_t i = count; i < node.inputs.size(); ++i) materialize(node.inputs[i]);
    make_twins(node, *params);
    return true;
  }

  /// A Clip of integers clips what they stand for.
  bool raise_clip(Node& node) {
    const auto twin = node.inputs.empty() ? twins_.end() : twins_.find(node.inputs[0]);
    if (node.op_type != "Clip" || twin == twins_.end() || twin->second.params.spec.axis >= 0) {
      return false;
    }
    const QuantParams params = twin->second.params;
    for (std::size_t i = 1; i < node.inputs.size(); ++i) {
      const Tensor* bound = graph_.constant(node.inputs[i]);
      if (bound == nullptr || bound->size() != 1) return false;
      const float number =
          (to_float(*bound)[0] - static_cast<float>(params.zero_point[0])) * params.scale[0];
      node.inputs[i] = graph_.add_constant("bound", Tensor::scalar(number));
    }
    node.inputs[0] = twin->second.real;
    make_twins(node, params);
    return true;
  }

  void make_twins(Node& node, const QuantParams& params) {
    for (ValueId& output : node.outputs) {
      if (output == kNoValue) continue;
      const ValueId real = fresh(name(output) + "_float", output);
      twins_[output] = {.real = real, .params = params};
      note(real, params);
      output = real;
    }
    written_.push_back(std::move(node));
  }

  /// Somebody needs the integers themselves.
  void materialize(ValueId integers) {
    const auto twin = twins_.find(integers);
    if (twin == twins_.end() || !made_.insert(integers).second) return;
    if (twin->second.real == integers) return;  // an input
    const QuantParams& params = twin->second.params;
    emit("QuantizeLinear",
         {twin->second.real, graph_.add_constant("scale", lower::scale_tensor(params)),
          graph_.add_constant("zero_point", lower::zero_tensor(params))},
         integers);
    if (params.spec.axis >= 0) {
      written_.back().set("axis", static_cast<std::int64_t>(params.spec.axis));
    }
  }

  /// A transposed weight is a weight, its channels along another axis.
  void follow_weight(const Node& node) {
    const auto found = raised_.weights.find(name(node.inputs[0]));
    const auto perm = node.get_ints("perm");
    if (found == raised_.weights.end()) return;
    QuantParams params = found->second;
    if (params.spec.axis >= 0) {
      const auto at = std::ranges::find(perm, params.spec.axis);
      const std::int64_t rank = graph_.constant(node.inputs[0])->rank();
      if (!perm.empty() && at == perm.end()) return;
      params.spec.axis =
          static_cast<int>(perm.empty() ? rank - 1 - params.spec.axis : at - perm.begin());
    }
    raised_.weights[name(node.outputs[0])] = params;
  }

  Raised& raised_;
  Graph& graph_;
  Uses uses_;  ///< of the graph as it was
  std::vector<Node> nodes_;
  std::vector<Node> written_;
  std::set<std::string> captured_;
  std::map<ValueId, Twin> twins_;           ///< by integer value
  std::map<ValueId, ValueId> replaced_;     ///< what readers of a DequantizeLinear read instead
  std::map<ValueId, ValueId> activations_;  ///< by what they read
  std::set<ValueId> made_;                  ///< integers that the raised graph makes
};

}  // namespace

Raised raise(Model quantized) {
  constexpr std::array<std::string_view, 3> kTidy = {"inline_functions", "lift_constants",
                                                     "remove_identity"};
  Raised raised{.model = std::move(quantized)};
  infer_types(raised.model);
  passes::run(raised.model, kTidy, {});
  split_qoperators(raised.model);
  raised.dynamic = split_dynamic(raised.model);
  infer_types(raised.model);
  Raiser(raised).run();
  infer_types(raised.model);
  verify(raised.model);
  return raised;
}

}  // namespace quench::retargeting
