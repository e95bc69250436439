// SPDX-License-Identifier: Apache-2.0
// Small networks for tests of plans and of what is made of them.
#pragma once

#include "quench/lower.h"
#include "quench/quant_config.h"
#include "unit/passes/builder.h"

namespace quench::testing {

/// A network under construction with layers of two channels on 4x4 images, and its plan.
struct Network : Builder {
  explicit Network(std::int64_t opset = 13) : Builder(opset) { input("x", {{1}, {2}, {4}, {4}}); }

  /// out = Conv(in), named after `out`.
  Network& conv(const std::string& in, const std::string& out, bool bias = true) {
    numbers(out + "_w", {2, 2, 1, 1}, {1, -2, 0.5F, 4});
    std::vector<std::string> inputs = {in, out + "_w"};
    if (bias) {
      numbers(out + "_b", {2}, {0.25F, -1});
      inputs.push_back(out + "_b");
    }
    node("Conv", inputs, {out}).name = "conv_" + out;
    return *this;
  }
  Network& then(const std::string& op, const std::vector<std::string>& inputs,
                const std::string& out) {
    node(op, inputs, {out}).name = out;
    return *this;
  }

  QuantPlan plan(const QuantConfig& config = {}) {
    infer_types(model);
    return make_plan(model, config);
  }
  const NodePlan& plan_of(const QuantPlan& plan, const std::string& output) {
    return plan.nodes.at(output);
  }

  /// Ranges of -1..3 for every value, and of the greatest magnitude for every constant.
  QuantSolution solve(const QuantPlan& plan) {
    QuantSolution solution;
    for (const auto& [name, value] : plan.values) {
      if (value.kind == ValuePlan::Kind::Float) continue;
      solution.values[name] = choose_params(value.spec, {Range{.min = -1, .max = 3}});
    }
    for (const WeightPlan& weight : plan.weights) {
      const Node& node = node_called(graph(), weight.node);
      const Tensor& tensor = *graph().constant(node.inputs[weight.input]);
      const std::int64_t channels =
          weight.spec.axis < 0 ? 1 : tensor.shape()[static_cast<std::size_t>(weight.spec.axis)];
      const std::vector<Range> ranges(static_cast<std::size_t>(channels),
                                      Range{.min = -4, .max = 4});
      solution.weights[weight.key()] = choose_params(weight.spec, ranges);
    }
    return solution;
  }
  Model quantized(const QuantConfig& config = {}) {
    const QuantPlan made = plan(config);
    return insert_qdq(model, made, solve(made));
  }
};

inline bool is_integer(const NodePlan& plan) { return plan.kind == NodePlan::Kind::Integer; }
inline bool is_float(const NodePlan& plan) { return plan.kind == NodePlan::Kind::Float; }

/// The kind of an Error that `act` throws, with its text; fails the test when it throws none.
template <typename Act>
std::pair<ErrorKind, std::string> error_of(const Act& act) {
  try {
    act();
  } catch (const Error& error) {
    return {error.kind(), error.what()};
  }
  ADD_FAILURE() << "nothing was thrown";
  return {ErrorKind::Internal, ""};
}

}  // namespace quench::testing
