// SPDX-License-Identifier: Apache-2.0
// Ranges of values that had no scale, from those of their neighbours.
#include "retarget/ranges.h"

#include <algorithm>
#include <cmath>

#include "plan/facts.h"
#include "retarget/params_of.h"

namespace quench::retargeting {
namespace {

Range joined(const Range& a, const Range& b) {
  return {.min = std::min(a.min, b.min), .max = std::max(a.max, b.max)};
}

/// Functions of one number: the bounds of their results, whatever they read, or how far below
/// zero they reach where they rise with what they read.
struct Bounded {
  std::string_view op_type;
  Range bounds;
};
constexpr Bounded kBounded[] = {
    {"Sigmoid", {0, 1}}, {"HardSigmoid", {0, 1}}, {"Softmax", {0, 1}},
    {"Tanh", {-1, 1}},   {"Erf", {-1, 1}},        {"Softsign", {-1, 1}},
};
/// x times a gate between 0 and 1: never below this, never above x.
struct Gated {
  std::string_view op_type;
  double least;
};
constexpr Gated kGated[] = {
    {"HardSwish", -0.375}, {"Swish", -0.2785}, {"Mish", -0.3088}, {"Gelu", -0.17}};

/// What these read need not reach further: the result is the same outside, or to less than half a
/// step of 8 bits. `rises`: above, the result is what was read.
struct Flat {
  std::string_view op_type;
  Range bounds;
  bool rises;
};
constexpr Flat kFlat[] = {
    {"HardSwish", {-3, 3}, true}, {"Swish", {-8, 8}, true}, {"Gelu", {-4, 4}, true},
    {"Sigmoid", {-8, 8}, false},  {"Tanh", {-4, 4}, false},
};

/// What pools and interpolation make lies between what they read. A pool may read zeros besides,
/// which every scale holds.
bool stays_within(const Node& node) {
  return ops::is(node, ops::kMoves) || ops::facts(node).integer == ops::IntegerForm::Average ||
         node.op_type == "ReduceMean" || node.op_type == "ReduceMax" ||
         node.op_type == "ReduceMin" || node.op_type == "Resize";
}

Range range_of_constant(const Tensor& tensor) {
  Range range;
  for (const float each : to_float(tensor)) {
    range = joined(range, {static_cast<double>(each), static_cast<double>(each)});
  }
  return range;
}

}  // namespace

Ranges::Ranges(const Model& model, const std::map<std::string, QuantParams>& known,
               const Ranges* more)
    : model_(model), graph_(model.graph), uses_(model.graph), found_(model.graph.values().size()) {
  for (std::size_t i = 0; i < found_.size(); ++i) {
    const auto id = static_cast<ValueId>(i);
    const auto scale = known.find(graph_[id].name);
    if (more != nullptr) found_[i] = more->of(graph_[id].name);
    if (scale != known.end()) found_[i] = KnownRange{.range = range_of(scale->second)};
    const Tensor* constant = graph_.constant(id);
    const bool number = constant != nullptr && constant->dtype() == DType::Float32;
    if (number) found_[i] = KnownRange{.range = range_of_constant(*constant)};
  }
  forward();
  backward();
  forward();
}

std::optional<KnownRange> Ranges::of(const std::string& value) const {
  const ValueId id = graph_.find(value);
  return id == kNoValue ? std::nullopt : at(id);
}

void Ranges::forward() {
  for (const Node& node : graph_.nodes) {
    if (node.inputs.empty() || !node.domain.empty()) continue;
    const Maybe range = result(node);
    if (!range || !std::isfinite(range->range.min) || !std::isfinite(range->range.max)) continue;
    for (const ValueId output : node.outputs) {
      if (output != kNoValue && !at(output)) at(output) = range;
    }
  }
}

/// The last first, so that what was found behind a node helps before it.
void Ranges::backward() {
  for (auto node = graph_.nodes.rbegin(); node != graph_.nodes.rend(); ++node) {
    for (const ValueId output : node->outputs) {
      if (output == kNoValue || at(output)) continue;
      const NodeId id = uses_.only_consumer(output);
      if (id < 0) continue;
      at(output) = wanted(graph_.nodes[static_cast<std::size_t>(id)], output);
    }
  }
}

/// The part of a value's range that its only reader tells apart.
Ranges::Maybe Ranges::wanted(const Node& reader, ValueId value) const {
  if (reader.op_type == "Add") return other_term(reader, value);
  if (reader.input(0) != value) return std::nullopt;
  const Maybe& made = at(reader.outputs[0]);
  if (ops::is(reader, ops::kView)) return made;
  if (reader.op_type == "HardSigmoid") {
    const auto [alpha, beta] = plan::hard_slope(reader);
    if (!(alpha > 0)) return std::nullopt;
    return KnownRange{{-beta / alpha, (1 - beta) / alpha}, true};
  }
  const auto* flat = std::ranges::find(kFlat, reader.op_type, &Flat::op_type);
  if (flat == std::end(kFlat) || (flat->rises && !made)) return std::nullopt;
  const double top = flat->rises ? std::max(made->range.max, flat->bounds.max) : flat->bounds.max;
  return KnownRange{{flat->bounds.min, top}, true};
}

Ranges::Maybe Ranges::result(const Node& node) const {
  if (const auto bounds = plan::activation_bounds(graph_, node, model_.opset())) {
    const Maybe& in = at(node.inputs[0]);
    KnownRange cut{.range = *bounds};
    if (in)
      cut = {{std::max(in->range.min, bounds->min), std::min(in->range.max, bounds->max)},
             in->loose};
    return cut;
  }
  if (node.op_type == "Concat") return hull(node, node.inputs.size());
  if (stays_within(node)) return hull(node, 1);
  if (node.op_type == "Add") return sum(node);
  if (node.op_type == "BatchNormalization") return normalized(node);
  if (node.op_type == "Mul") return product(node);
  return function(node);
}

Ranges::Maybe Ranges::hull(const Node& node, std::size_t count) const {
  Maybe all;
  for (std::size_t i = 0; i < count; ++i) {
    const Maybe in = node.inputs[i] == kNoValue ? Maybe() : at(node.inputs[i]);
    if (!in) return std::nullopt;
    all = all ? KnownRange{joined(all->range, in->range), all->loose || in->loose} : in;
  }
  return all;
}

Ranges::Maybe Ranges::function(const Node& node) const {
  const auto* bounded = std::ranges::find(kBounded, node.op_type, &Bounded::op_type);
  if (bounded != std::end(kBounded)) return KnownRange{.range = bounded->bounds};
  const Maybe& in = at(node.inputs[0]);
  if (!in) return std::nullopt;
  const auto* gated = std::ranges::find(kGated, node.op_type, &Gated::op_type);
  if (gated != std::end(kGated)) {
    return KnownRange{{std::max(in->range.min, gated->least), in->range.max}, in->loose};
  }
  if (node.op_type != "LeakyRelu") return std::nullopt;
  constexpr float kSlope = 0.01F;
  const auto slope = static_cast<double>(node.get_float("alpha", kSlope));
  if (slope < 0 || slope > 1) return std::nullopt;
  return KnownRange{{in->range.min * slope, in->range.max}, in->loose};
}

Ranges::Maybe Ranges::normalized(const Node& node) const {
  constexpr std::size_t kInputs = 5;  // what it reads, factor, term, mean, variance
  const Maybe& in = at(node.inputs[0]);
  if (!in || node.inputs.size() < kInputs) return std::nullopt;
  std::vector<std::vector<float>> numbers;
  for (std::size_t i = 1; i < kInputs; ++i) {
    const Tensor* constant = graph_.constant(node.inputs[i]);
    if (constant == nullptr) return std::nullopt;
    numbers.push_back(to_float(*constant));
    if (numbers.back().size() != numbers[0].size()) return std::nullopt;
  }
  constexpr float kEpsilon = 1e-5F;
  const auto epsilon = static_cast<double>(node.get_float("epsilon", kEpsilon));
  KnownRange all{.loose = true};
  for (std::size_t c = 0; c < numbers[0].size(); ++c) {
    const auto number = [&](std::size_t which) { return static_cast<double>(numbers[which][c]); };
    const double factor = number(0) / std::sqrt(number(3) + epsilon);
    const double low = (in->range.min - number(2)) * factor + number(1);
    const double high = (in->range.max - number(2)) * factor + number(1);
    all.range = joined(all.range, {std::min(low, high), std::max(low, high)});
  }
  return all;
}

Ranges::Maybe Ranges::sum(const Node& node) const {
  const Maybe& a = at(node.inputs[0]);
  const Maybe& b = at(node.inputs[1]);
  if (!a || !b) return std::nullopt;
  return KnownRange{{a->range.min + b->range.min, a->range.max + b->range.max}, true};
}

Ranges::Maybe Ranges::product(const Node& node) const {
  const Maybe& a = at(node.inputs[0]);
  const Maybe& b = at(node.inputs[1]);
  if (!a || !b) return std::nullopt;
  const auto corners = {a->range.min * b->range.min, a->range.min * b->range.max,
                        a->range.max * b->range.min, a->range.max * b->range.max};
  return KnownRange{{std::min(corners), std::max(corners)}, true};
}

Ranges::Maybe Ranges::other_term(const Node& add, ValueId term) const {
  const ValueId other = add.inputs[add.inputs[0] == term ? 1 : 0];
  Maybe total = at(add.outputs[0]);
  const NodeId behind = uses_.only_consumer(add.outputs[0]);
  if (!total && behind >= 0) {
    const Node& clamp = graph_.nodes[static_cast<std::size_t>(behind)];
    if (plan::activation_bounds(graph_, clamp, model_.opset())) total = at(clamp.outputs[0]);
  }
  if (!total || other == term || !at(other)) return std::nullopt;
  const Range& rest = at(other)->range;
  return KnownRange{{total->range.min - rest.max, total->range.max - rest.min}, true};
}

}  // namespace quench::retargeting
