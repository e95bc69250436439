// SPDX-License-Identifier: Apache-2.0
// Quantises with ranges from a file, so that a script can check the result in a runtime:
//   quench_qdq prepare IN OUT
//   quench_qdq plan PREPARED TARGET            what is done with each node; values to be measured
//   quench_qdq quantize PREPARED TARGET RANGES OUT FORMAT   a line of RANGES: min, max, name
//   quench_qdq lint MODEL TARGET
//   quench_qdq lift IN OUT OPSET
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <string>

#include "quench/error.h"
#include "quench/lower.h"
#include "quench/quant_config.h"
#include "quench/quantize.h"

namespace {

using namespace quench;

QuantConfig config_for(const std::string& target) {
  QuantConfig config;
  config.target = target;
  return config;
}

void show_plan(const Model& model, const QuantPlan& plan) {
  const std::vector<std::string> kinds = {"integer", "moves", "float"};
  for (const Node& node : model.graph.nodes) {
    const NodePlan& decision = plan.of(model.graph, node);
    std::cout << "node\t" << label(model.graph, node) << '\t'
              << kinds[static_cast<std::size_t>(decision.kind)] << '\t' << decision.reason << '\n';
  }
  for (const auto& [name, value] : plan.values) {
    if (value.kind == ValuePlan::Kind::Observed) std::cout << "value\t" << name << '\n';
  }
}

/// The range of each channel of a constant.
std::vector<Range> ranges_of(const Tensor& tensor, const QuantSpec& spec) {
  const auto data = to_float(tensor);
  std::size_t channels = 1;
  std::size_t inner = data.size();
  if (spec.axis >= 0) {
    const auto axis = static_cast<std::size_t>(spec.axis);
    channels = static_cast<std::size_t>(tensor.shape()[axis]);
    inner = 1;
    for (std::size_t i = axis + 1; i < tensor.shape().size(); ++i) {
      inner *= static_cast<std::size_t>(tensor.shape()[i]);
    }
  }
  std::vector<Range> ranges(channels);
  for (std::size_t i = 0; i < data.size(); ++i) {
    Range& range = ranges[i / inner % channels];
    range.min = std::min(range.min, static_cast<double>(data[i]));
    range.max = std::max(range.max, static_cast<double>(data[i]));
  }
  return ranges;
}

QuantSolution solve(const Model& model, const QuantPlan& plan, const std::string& path) {
  QuantSolution solution;
  std::ifstream file(path);
  Range range;
  std::string name;
  while (file >> range.min >> range.max && std::getline(file >> std::ws, name)) {
    solution.values[name] = choose_params(plan.values.at(name).spec, {range});
  }
  for (const auto& [value, planned] : plan.values) {
    if (planned.kind != ValuePlan::Kind::SharedWith) continue;
    solution.values[value] = solution.values.at(planned.source);
  }
  for (const WeightPlan& weight : plan.weights) {
    const Node& node = node_called(model.graph, weight.node);
    const Tensor& tensor = *model.graph.constant(node.inputs[weight.input]);
    solution.weights[weight.key()] = choose_params(weight.spec, ranges_of(tensor, weight.spec));
  }
  return solution;
}

int run(const std::vector<std::string>& words) {
  const std::string& verb = words.at(0);
  if (verb == "prepare") save(prepare_for_quantization(load(words.at(1))), words.at(2));
  if (verb == "lift") {
    Model model = load(words.at(1));
    lift_opset(model, std::stoll(words.at(3)));
    verify(model);
    infer_types(model);
    save(model, words.at(2));
  }
  if (verb == "plan" || verb == "quantize") {
    Model model = load(words.at(1));
    infer_types(model);
    const QuantPlan plan = make_plan(model, config_for(words.at(2)));
    if (verb == "plan") {
      show_plan(model, plan);
      return 0;
    }
    Model result = insert_qdq(model, plan, solve(model, plan, words.at(3)));
    if (words.at(5) == "qoperator") result = to_qoperator(result);
    save(result, words.at(4));
  }
  if (verb == "lint") {
    for (const LintLine& line : lint(load(words.at(1)), words.at(2))) {
      std::cout << line.node << '\t' << line.op_type << '\t' << (line.integer ? "int" : "float")
                << '\t' << line.reason << '\n';
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
