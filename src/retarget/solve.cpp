// SPDX-License-Identifier: Apache-2.0
// The parameters that a plan wants, from those that another tool chose.
#include "retarget/solve.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "calibrate/collect.h"
#include "lower/params.h"
#include "ops/facts.h"
#include "quant/dequantize_linear.h"
#include "retarget/params_of.h"

namespace quench::retargeting {
namespace {

/// By what each channel was multiplied; nothing where it was not the same for all its elements.
std::optional<std::vector<double>> factors(const Tensor& before, const Tensor& after,
                                           std::int64_t axis) {
  if (before.shape() != after.shape() || axis < 0 || axis >= before.rank()) return std::nullopt;
  const auto channels = before.shape()[static_cast<std::size_t>(axis)];
  const Tensor one =
      Tensor::of<float>({channels}, std::vector<float>(static_cast<std::size_t>(channels), 1.0F));
  const auto places = quant::scale_places(before.shape(), one, axis);
  const std::vector<float> from = to_float(before);
  const std::vector<float> to = to_float(after);
  std::vector<double> ratio(static_cast<std::size_t>(channels), 0.0);
  std::vector<float> largest(ratio.size(), 0.0F);
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (std::abs(from[i]) <= largest[places[i]]) continue;
    largest[places[i]] = std::abs(from[i]);
    ratio[places[i]] = static_cast<double>(to[i]) / static_cast<double>(from[i]);
  }
  constexpr double kNear = 1e-4;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const double wanted = static_cast<double>(from[i]) * ratio[places[i]];
    const double most = std::abs(ratio[places[i]]) * static_cast<double>(largest[places[i]]);
    if (std::abs(static_cast<double>(to[i]) - wanted) > kNear * most) return std::nullopt;
  }
  return ratio;
}

}  // namespace

QuantParams fitted(const QuantSpec& wanted, const QuantParams& given) {
  QuantSpec whole = given.spec;  // of the type: steps that were cut off are there again
  whole.narrow = false;
  const std::int64_t low = given.spec.q_min() - given.zero_point[0];
  const std::int64_t high = given.spec.q_max() - given.zero_point[0];
  QuantParams params{.spec = wanted, .scale = given.scale, .zero_point = {0}};
  params.spec.axis = -1;
  const bool one = given.spec.axis < 0 && given.spec.bits <= wanted.bits;
  if (one && !wanted.symmetric) {
    const std::int64_t zero = given.zero_point[0] + wanted.q_min() - whole.q_min();
    params.zero_point[0] = static_cast<std::int32_t>(zero);
    if (low + zero >= wanted.q_min() && high + zero <= wanted.q_max()) return params;
  }
  const std::int64_t middle = wanted.is_signed ? 0 : (wanted.q_max() + 1) / 2;
  // The lowest step of a signed type has no counterpart: that it is cut off costs nothing.
  if (one && wanted.symmetric && low + middle + 1 >= wanted.q_min() &&
      high + middle <= wanted.q_max()) {
    params.zero_point[0] = static_cast<std::int32_t>(middle);
    return params;
  }
  QuantSpec spec = wanted;
  spec.axis = -1;
  return choose_params(spec, {range_of(given)});
}

std::optional<QuantParams> weight_params(const Model& prepared, const Node& node, std::size_t input,
                                         const Raised& raised) {
  const std::string& name = prepared.graph[node.inputs[input]].name;
  const auto found = raised.weights.find(name);
  const Tensor* now = prepared.graph.constant(node.inputs[input]);
  if (found == raised.weights.end() || now == nullptr) return std::nullopt;
  QuantParams params = found->second;
  const ValueId old = raised.model.graph.find(name);
  const Tensor* before = old == kNoValue ? nullptr : raised.model.graph.constant(old);
  if (before == nullptr || *before == *now) return params;  // a Transpose was folded, or nothing
  const auto layout = ops::weight_layout(node, input, now->shape());
  const auto ratio = factors(*before, *now, layout ? layout->channel_axis : -1);
  if (!ratio || (params.spec.axis >= 0 && params.spec.axis != layout->channel_axis)) {
    return std::nullopt;
  }
  params.scale.resize(ratio->size(), params.scale[0]);
  params.zero_point.resize(ratio->size(), params.zero_point[0]);
  params.spec.axis = layout->channel_axis;
  const std::int32_t middle = params.spec.is_signed ? 0 : 1 << (params.spec.bits - 1);
  for (std::size_t i = 0; i < ratio->size(); ++i) {
    const double factor = (*ratio)[i];
    if (factor < 0) params.zero_point[i] = 2 * middle - params.zero_point[i];
    if (factor != 0) params.scale[i] *= static_cast<float>(std::abs(factor));
  }
  return params;
}

Solver::Solver(const Model& prepared, const QuantPlan& plan, const Raised& raised)
    : model_(prepared),
      plan_(plan),
      raised_(raised),
      before_(raised.model, raised.values),
      ranges_(prepared, raised.values, &before_) {
  for (const auto& [name, value] : plan.values) {
    if (value.kind == ValuePlan::Kind::SharedWith) sharing_[value.source].push_back(name);
  }
}

/// Of the value itself, or of what shares its scale: the range of all of these.
std::optional<QuantParams> Solver::given(const std::string& value) const {
  const auto own = raised_.values.find(value);
  if (own != raised_.values.end()) return own->second;
  const auto sharing = sharing_.find(value);
  std::vector<const QuantParams*> found;
  if (sharing != sharing_.end()) {
    for (const std::string& name : sharing->second) {
      const auto its = raised_.values.find(name);
      if (its != raised_.values.end()) found.push_back(&its->second);
    }
  }
  if (found.empty()) return std::nullopt;
  const bool same = std::ranges::all_of(
      found, [&](const QuantParams* each) { return same_integers(*each, *found[0]); });
  if (same) return *found[0];
  Range range;
  for (const QuantParams* each : found) {
    range = {std::min(range.min, range_of(*each).min), std::max(range.max, range_of(*each).max)};
  }
  QuantSpec spec = plan_.values.at(value).spec;
  return choose_params(spec, {range});
}

Source Solver::source(const std::string& value) const {
  const ValuePlan& planned = plan_.values.at(value);
  if (planned.kind == ValuePlan::Kind::Fixed) return Source::Fixed;
  if (given(value)) return Source::Kept;
  return ranges_.of(value) ? Source::Neighbours : Source::Nowhere;
}

std::vector<std::string> Solver::unknown() const {
  std::vector<std::string> names = calibrate::observed_values(plan_);
  std::erase_if(names, [&](const std::string& name) { return source(name) != Source::Nowhere; });
  return names;
}

std::vector<std::string> Solver::to_observe() const {
  std::vector<std::string> names = calibrate::observed_values(plan_);
  std::erase_if(names, [&](const std::string& name) {
    if (given(name)) return true;
    const auto range = ranges_.of(name);
    return range && !range->loose;
  });
  return names;
}

QuantSolution Solver::solve(const StatisticMap& statistics) const {
  // What statistics tell is found as in every quantisation, and weights where nothing is known.
  QuantPlan rest = plan_;
  std::erase_if(rest.values, [&](const auto& each) {
    const bool fixed = each.second.kind == ValuePlan::Kind::Fixed;
    return !fixed && !statistics.contains(each.first);
  });
  rest.weights.clear();
  QuantSolution solution = calibrate::solve(model_, rest, statistics, {});
  for (const std::string& name : calibrate::observed_values(plan_)) {
    if (solution.values.contains(name)) continue;
    const QuantSpec& spec = plan_.values.at(name).spec;
    if (const auto params = given(name)) {
      solution.values[name] = fitted(spec, *params);
    } else if (const auto range = ranges_.of(name)) {
      solution.values[name] = choose_params(spec, {range->range});
    } else {
      fail(ErrorKind::Internal, "nothing tells the range of '{}'", name);
    }
  }
  calibrate::share_params(plan_, solution);
  for (const WeightPlan& planned : plan_.weights) solution.weights[planned.key()] = weight(planned);
  return solution;
}

/// Integers stay what they are, less their zero point, where the target can hold them; else
/// whatever is nearer: the steps kept and some integers cut, or wider steps.
QuantParams Solver::weight(const WeightPlan& planned) const {
  const Node& node = node_called(model_.graph, planned.node);
  const Tensor& tensor = *model_.graph.constant(node.inputs[planned.input]);
  const auto given = weight_params(model_, node, planned.input, raised_);
  const auto anew = [&] {
    QuantSpec spec = planned.spec;
    spec.observer = spec.axis >= 0 ? "channel_wise_abs_max" : "abs_max";
    return choose_params(planned.spec, weight_ranges(tensor, spec));
  };
  if (!given) return anew();
  if (!planned.spec.symmetric) {
    return given->spec.axis < 0 ? fitted(planned.spec, *given) : anew();
  }
  if (given->spec.axis >= 0 && given->spec.axis != planned.spec.axis) return anew();
  QuantParams kept = *given;
  kept.spec = planned.spec;
  kept.spec.axis = given->spec.axis;
  std::ranges::fill(kept.zero_point, kept.spec.is_signed ? 0 : (kept.spec.q_max() + 1) / 2);
  const QuantParams wider = anew();
  return lower::squared_error(tensor, kept) <= lower::squared_error(tensor, wider) ? kept : wider;
}

}  // namespace quench::retargeting
