// SPDX-License-Identifier: Apache-2.0
// Inference through functions: the body is copied, given the caller's facts, and inferred.
#include "ops/functions.h"

#include <algorithm>

namespace quench::ops {
namespace {

constexpr int kMaxCallDepth = 16;

/// What the caller, or else the function's default, says for an attribute; null: nothing.
const Attribute* find_argument(const Node& node, const Function& function, std::string_view name) {
  if (const Attribute* given = node.find(name)) return given;
  const auto& defaults = function.attribute_defaults;
  const auto found = std::find_if(defaults.begin(), defaults.end(),
                                  [&](const Attribute& a) { return a.name == name; });
  return found == defaults.end() ? nullptr : &*found;
}

/// Puts the caller's attributes in the place of references to them. Graphs inside keep theirs:
/// what depends on them stays unknown.
void bind_attributes(Graph& body, const Node& node, const Function& function) {
  for (Node& inner : body.nodes) {
    for (Attribute& attribute : inner.attributes) {
      if (attribute.reference.empty()) continue;
      if (const Attribute* given = find_argument(node, function, attribute.reference)) {
        attribute.data = given->data;
        attribute.reference.clear();
      }
    }
    std::erase_if(inner.attributes, [](const Attribute& a) { return !a.reference.empty(); });
  }
}

}  // namespace

const Function* find_function(const Inference& inference, const Node& node) {
  const auto found = inference.functions.find(node.op_type);
  if (found == inference.functions.end()) return nullptr;
  const auto& candidates = found->second;
  const auto match = std::find_if(candidates.begin(), candidates.end(),
                                  [&](const Function* f) { return f->domain == node.domain; });
  return match == candidates.end() ? nullptr : *match;
}

void infer_call(Scope& scope, const Node& node, const Function& function) {
  if (scope.depth >= kMaxCallDepth) return;
  // The copy itself costs, however little of the body is then visited.
  scope.inference.body_budget -= static_cast<std::int64_t>(function.body.nodes.size());
  if (scope.inference.body_budget < 0) return;
  Graph body = function.body;
  bind_attributes(body, node, function);
  Scope inner(scope, body, function.opsets, nullptr);
  for (std::size_t i = 0; i < std::min(node.inputs.size(), body.inputs.size()); ++i) {
    if (node.inputs[i] == kNoValue) continue;
    refine(inner, body.inputs[i], scope.graph[node.inputs[i]].type);
    inner.fact(body.inputs[i]) = scope.fact(node.inputs[i]);
  }
  infer_scope(inner);
  for (std::size_t i = 0; i < std::min(node.outputs.size(), body.outputs.size()); ++i) {
    if (node.outputs[i] == kNoValue) continue;
    refine(scope, node.outputs[i], body[body.outputs[i]].type);
    Fact fact = inner.fact(body.outputs[i]);
    fact.constant = nullptr;  // it may lie in the copy
    if (fact.ints) scope.fact(node.outputs[i]) = std::move(fact);
  }
}

}  // namespace quench::ops
