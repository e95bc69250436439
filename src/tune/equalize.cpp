// SPDX-License-Identifier: Apache-2.0
// Chooses the scales of each group and writes them into the model.
#include "tune/equalize.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/format.h"
#include "passes/layer.h"
#include "plan/target.h"
#include "tune/channel_stats.h"
#include "tune/open_gates.h"
#include "tune/scale_groups.h"
#include "tune/scaled_gates.h"

namespace quench::tune {
namespace {

constexpr double kActivationSteps = 255;
constexpr double kWeightSteps = 127;
/// What a Clip would cut is left this much room above what the samples reached.
constexpr double kHeadroom = 1.05;
/// Scales that all lie this near to one another are not worth a change.
constexpr double kWorth = 1.05;
/// The nodes that a gate then needs are worth it where the error's energy falls by this factor.
constexpr double kWorthGate = 4;

using Scales = std::vector<double>;

/// A layer's weight with the channels that each element joins.
class Weight {
 public:
  Weight(Model& model, const Node& node)
      : rewriter_(model.graph, model, options_),
        layer_(*passes::layer_of(rewriter_, node)),
        tensor_(*model.graph.constant(node.inputs[1])),
        map_(layer_, tensor_),
        numbers_(passes::to_doubles(tensor_)) {}

  const passes::Layer& layer() const { return layer_; }
  /// Calls visit(value, channels).
  template <typename Visit>
  void for_each(const Visit& visit) {
    map_.for_each([&](std::size_t i, passes::WeightMap::Channels at) { visit(numbers_[i], at); });
  }
  std::optional<Tensor> rounded() const {
    return passes::rounded(numbers_, tensor_.shape(), tensor_.dtype());
  }

 private:
  passes::PassOptions options_;
  passes::Rewriter rewriter_;
  passes::Layer layer_;
  const Tensor& tensor_;
  passes::WeightMap map_;
  std::vector<double> numbers_;
};

/// What is known of a group's channels.
struct Facts {
  Scales reach;        ///< the largest magnitude
  Scales mean_square;  ///< of what the layers read
  double most = 0;     ///< of `reach`
};

class Equalizer {
 public:
  Equalizer(Model& model, const QuantPlan& plan) : model_(model), plan_(plan), uses_(model.graph) {}

  Equalized run(std::span<const TensorMap> batches, const Context& context) {
    const std::vector<ScaleGroup> groups = find_scale_groups(model_);
    std::vector<std::string> names;
    for (const ScaleGroup& group : groups) {
      for (const ValueId id : group.values) names.push_back(model_.graph[id].name);
    }
    if (names.empty()) return {};
    stats_ = channel_stats(model_, names, batches, context);
    Equalized result;
    for (const ScaleGroup& group : groups) {
      const Scales scales = choose(group);
      if (scales.empty() || !apply(group, scales)) continue;
      ScaledValues& scaled = result.scaled.emplace_back();
      for (const ValueId id : group.values) scaled.values.push_back(model_.graph[id].name);
      scaled.scales = scales;
    }
    const bool by_channel = std::ranges::all_of(plan_.weights, [](const WeightPlan& each) {
      return each.input != 1 || each.spec.axis >= 0;
    });
    result.gates = gates_.size();
    result.float_nodes =
        rescale_gates(model_, std::move(gates_), by_channel && multiplies_integers());
    return result;
  }

 private:
  const Node& node(NodeId id) const { return model_.graph.nodes[static_cast<std::size_t>(id)]; }

  /// Whether the target gates on integers; if not, its gates are computed in float anyway.
  bool multiplies_integers() const {
    const TargetOp* product = plan::find_op(find_target(plan_.target), "Mul");
    return product != nullptr && product->kind == NodePlan::Kind::Integer;
  }

  bool per_channel(NodeId id) const {
    const std::string& name = output_name(model_.graph, node(id));
    const auto found = std::ranges::find_if(plan_.weights, [&](const WeightPlan& weight) {
      return weight.node == name && weight.input == 1;
    });
    return found == plan_.weights.end() || found->spec.axis >= 0;
  }

  bool is_quantized(ValueId id) const {
    const auto found = plan_.values.find(model_.graph[id].name);
    return found != plan_.values.end() && found->second.kind != ValuePlan::Kind::Float;
  }

  Facts facts(const ScaleGroup& group) const {
    const auto count = static_cast<std::size_t>(group.channels);
    Facts facts{.reach = Scales(count, 0.0), .mean_square = Scales(count, 0.0)};
    for (const ValueId id : group.values) {
      const auto found = stats_.find(model_.graph[id].name);
      if (found == stats_.end() || !is_quantized(id)) continue;
      for (std::size_t c = 0; c < count; ++c) {
        facts.reach[c] = std::max(facts.reach[c], found->second.abs_max[c]);
        facts.mean_square[c] = std::max(facts.mean_square[c], found->second.mean_square[c]);
      }
    }
    facts.most = *std::ranges::max_element(facts.reach);
    return facts;
  }

  Scales choose(const ScaleGroup& group) const {
    const Facts known = facts(group);
    if (!(known.most > 0)) return {};
    const bool by_channel =
        std::ranges::all_of(group.readers, [&](NodeId id) { return per_channel(id); });
    Scales scales = by_channel ? by_noise(group, known) : by_weights(group);
    for (std::size_t c = 0; c < scales.size(); ++c) {
      if (!std::isfinite(scales[c]) || scales[c] <= 0 || known.reach[c] == 0) scales[c] = 1;
      if (std::isinf(group.ceiling)) continue;
      const double least = kHeadroom * known.reach[c] / group.ceiling;
      scales[c] = least >= 1 ? 1 : std::max(scales[c], least);
    }
    const auto [low, high] = std::ranges::minmax_element(scales);
    if (*high / *low < kWorth) return {};
    const auto gain = [&] {
      return noise(group, known, Scales(scales.size(), 1.0)) / noise(group, known, scales);
    };
    return group.gates.empty() || gain() >= kWorthGate ? scales : Scales();
  }

  /// The error that a layer passes on is a s^2 from the scale of its input and b / s^2 from its
  /// weights' scales: least at s^4 = b / a.
  Scales by_noise(const ScaleGroup& group, const Facts& known) const {
    const auto count = static_cast<std::size_t>(group.channels);
    Scales from_values(count, 0.0);
    Scales from_weights(count, 0.0);
    const double step = known.most / kActivationSteps;
    for (const NodeId id : group.readers) {
      Weight weight(model_, node(id));
      const auto outputs = static_cast<std::size_t>(weight.layer().channels.count);
      Scales energy(outputs, 0.0);
      Scales top(outputs, 0.0);
      std::vector<std::pair<std::size_t, std::size_t>> inputs(outputs, {count, 0});
      weight.for_each([&](double w, passes::WeightMap::Channels at) {
        energy[at.out] += w * w * known.mean_square[at.in];
        top[at.out] = std::max(top[at.out], std::abs(w));
        inputs[at.out] = {std::min(inputs[at.out].first, at.in),
                          std::max(inputs[at.out].second, at.in)};
      });
      weight.for_each([&](double w, passes::WeightMap::Channels at) {
        if (!(energy[at.out] > 0)) return;
        from_values[at.in] += step * step * w * w / energy[at.out];
        // A scale for one input channel alone grows and shrinks with it.
        if (inputs[at.out].first == inputs[at.out].second) return;
        const double rounding = top[at.out] / kWeightSteps;
        from_weights[at.in] += rounding * rounding * known.mean_square[at.in] / energy[at.out];
      });
    }
    Scales scales(count);
    for (std::size_t c = 0; c < count; ++c) {
      const double best = std::pow(from_weights[c] / from_values[c], 0.25);
      scales[c] = std::clamp(best, std::min(1.0, known.reach[c] / known.most), 1.0);
    }
    return scales;
  }

  /// The error's share in what the readers make, with values and weights scaled by `scales`.
  double noise(const ScaleGroup& group, const Facts& known, const Scales& scales) const {
    double reach = 0;
    for (std::size_t c = 0; c < scales.size(); ++c) {
      reach = std::max(reach, known.reach[c] / scales[c]);
    }
    const double step = reach / kActivationSteps;
    double sum = 0;
    for (const NodeId id : group.readers) {
      Weight weight(model_, node(id));
      const auto outputs = static_cast<std::size_t>(weight.layer().channels.count);
      Scales energy(outputs, 0.0);
      Scales gain(outputs, 0.0);   // of the values' error
      Scales input(outputs, 0.0);  // what multiplies the weights' error
      Scales top(outputs, 0.0);
      weight.for_each([&](double w, passes::WeightMap::Channels at) {
        const double s = scales[at.in];
        energy[at.out] += w * w * known.mean_square[at.in];
        gain[at.out] += w * w * s * s;
        input[at.out] += known.mean_square[at.in] / (s * s);
        top[at.out] = std::max(top[at.out], std::abs(w) * s);
      });
      for (std::size_t o = 0; o < outputs; ++o) {
        const double rounding = top[o] / kWeightSteps;
        if (energy[o] > 0)
          sum += (step * step * gain[o] + rounding * rounding * input[o]) / energy[o];
      }
    }
    return sum;
  }

  /// Equal ranges before and behind: s = sqrt(range of the maker / range of the reader).
  Scales by_weights(const ScaleGroup& group) const {
    const auto count = static_cast<std::size_t>(group.channels);
    Scales made(count, 0.0);
    Scales read(count, 0.0);
    for (const NodeId id : group.makers) {
      Weight(model_, node(id)).for_each([&](double w, passes::WeightMap::Channels at) {
        made[at.out] = std::max(made[at.out], std::abs(w));
      });
    }
    for (const NodeId id : group.readers) {
      Weight(model_, node(id)).for_each([&](double w, passes::WeightMap::Channels at) {
        read[at.in] = std::max(read[at.in], std::abs(w));
      });
    }
    Scales scales(count);
    for (std::size_t c = 0; c < count; ++c) scales[c] = std::sqrt(made[c] / read[c]);
    return scales;
  }

  /// Divides what a layer makes, or multiplies what it reads; false where a number would overflow.
  bool scale_layer(NodeId id, const Scales& scales, bool output) {
    Weight weight(model_, node(id));
    weight.for_each([&](double& w, passes::WeightMap::Channels at) {
      w = output ? w / scales[at.out] : w * scales[at.in];
    });
    std::optional<Tensor> scaled = weight.rounded();
    if (!scaled) return false;
    Graph& graph = model_.graph;
    Node& changed = graph.nodes[static_cast<std::size_t>(id)];
    if (output && weight.layer().bias != kNoValue) {
      Scales shift = weight.layer().shift;
      for (std::size_t c = 0; c < shift.size(); ++c) shift[c] /= scales[c];
      auto bias = passes::rounded(shift, {static_cast<std::int64_t>(shift.size())},
                                  graph.constant(weight.layer().bias)->dtype());
      if (!bias) return false;
      if (changed.op_type == "Gemm") changed.set("beta", 1.0F);
      replace(changed.inputs[2], std::move(*bias));
    }
    replace(changed.inputs[1], std::move(*scaled));
    return true;
  }

  /// Under its old name, by which a configuration may call it, unless others read it too.
  void replace(ValueId& input, Tensor tensor) {
    Graph& graph = model_.graph;
    const auto at = static_cast<std::size_t>(input);
    const bool shared = at < uses_.consumers.size() && uses_.only_consumer(input) < 0;
    if (shared || std::ranges::find(graph.inputs, input) != graph.inputs.end()) {
      input = graph.add_constant(graph[input].name, std::move(tensor));
      return;
    }
    replaced_.emplace_back(input, *graph[input].constant);
    graph[input].type = ValueType::of(tensor);
    graph[input].constant = std::move(tensor);
  }

  void take_back(const std::vector<Node>& nodes) {
    model_.graph.nodes = nodes;
    for (auto at = replaced_.rbegin(); at != replaced_.rend(); ++at) {
      auto& [id, tensor] = *at;
      model_.graph[id].type = ValueType::of(tensor);
      model_.graph[id].constant = std::move(tensor);
    }
  }

  /// The constant of an Add, one number a channel from now on.
  void scale_shift(NodeId id, std::size_t input, const Scales& scales) {
    Graph& graph = model_.graph;
    Node& add = graph.nodes[static_cast<std::size_t>(id)];
    const Tensor& old = *graph.constant(add.inputs[input]);
    const std::vector<float> numbers = to_float(old);
    std::vector<float> shift(scales.size());
    for (std::size_t c = 0; c < shift.size(); ++c) {
      const float number = numbers[numbers.size() == 1 ? 0 : c];
      shift[c] = static_cast<float>(static_cast<double>(number) / scales[c]);
    }
    Shape shape(graph[add.outputs[0]].type.shape->size(), 1);
    shape[1] = static_cast<std::int64_t>(shift.size());
    replace(add.inputs[input], Tensor::of<float>(std::move(shape), std::span<const float>(shift)));
  }

  bool apply(const ScaleGroup& group, const Scales& scales) {
    const std::vector<Node> before = model_.graph.nodes;
    replaced_.clear();
    bool done = true;
    for (const NodeId id : group.makers) done = done && scale_layer(id, scales, true);
    for (const NodeId id : group.readers) done = done && scale_layer(id, scales, false);
    for (const auto& [id, input] : group.shifts) scale_shift(id, input, scales);
    if (!done) {
      take_back(before);
      return false;
    }
    for (const NodeId id : group.gates) gates_.push_back({.gate = id, .scales = scales});
    return true;
  }

  Model& model_;
  const QuantPlan& plan_;
  std::map<std::string, ChannelStats> stats_;
  std::vector<ScaledGate> gates_;
  Uses uses_;                                         ///< as equalisation found them
  std::vector<std::pair<ValueId, Tensor>> replaced_;  ///< by the group at hand: what was there
};

}  // namespace

bool has_gates(Model model) {
  open_gates(model);
  return std::ranges::any_of(find_scale_groups(model),
                             [](const ScaleGroup& group) { return !group.gates.empty(); });
}

Equalized equalize(Model& model, const QuantPlan& plan, std::span<const TensorMap> batches,
                   const Context& context) {
  const std::vector<OpenedGate> opened = open_gates(model);
  Equalized result = Equalizer(model, plan).run(batches, context);
  close_gates(model, opened);
  infer_types(model);
  return result;
}

}  // namespace quench::tune
