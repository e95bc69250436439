// SPDX-License-Identifier: Apache-2.0
// Which constants of a graph training changes: asked of the operators' rows.
#include "qat/trained_inputs.h"

#include "ops/facts.h"

namespace quench::qat {
namespace {

bool is_learned(const ops::OpFacts& facts, std::size_t input) {
  const auto in = [&](ops::InputSet set) {
    return input < 8 && ((static_cast<unsigned>(set) >> input) & 1U) != 0;
  };
  return in(facts.weights) || in(facts.learned) || facts.bias == static_cast<int>(input);
}

}  // namespace

std::vector<std::size_t> trained_inputs(const Graph& graph, const Node& node) {
  const ops::OpFacts& facts = ops::facts(node);
  const bool operands = ops::is(node, ops::kOperands);
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const Tensor* constant = graph.constant(node.inputs[i]);
    if (constant == nullptr || constant->dtype() != DType::Float32) continue;
    if (is_learned(facts, i) || (operands && constant->size() > 1)) result.push_back(i);
  }
  return result;
}

}  // namespace quench::qat
