// SPDX-License-Identifier: Apache-2.0
// Small models for pass tests, and what is left of them.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "exec/rewrites/rewrite.h"
#include "quench/error.h"

namespace quench::testing {

/// A model under construction: names instead of ids.
struct Builder {
  Model model;

  explicit Builder(std::int64_t opset = 17) { model.opsets[""] = opset; }

  Graph& graph() { return model.graph; }
  ValueId id(std::string_view name) { return graph().find(name); }

  Builder& input(const std::string& name, std::vector<Dim> shape, DType dtype = DType::Float32) {
    Value value;
    value.name = name;
    value.type = ValueType::tensor(dtype, std::move(shape));
    graph().inputs.push_back(graph().add_value(std::move(value)));
    return *this;
  }
  Builder& constant(const std::string& name, Tensor tensor) {
    graph().add_constant(name, std::move(tensor));
    return *this;
  }
  Builder& numbers(const std::string& name, Shape shape, std::vector<float> values) {
    return constant(name, Tensor::of<float>(std::move(shape), values));
  }
  Builder& number(const std::string& name, float value) { return numbers(name, {}, {value}); }
  /// "" leaves an input out.
  Node& node(const std::string& op, const std::vector<std::string>& inputs,
             const std::vector<std::string>& outputs) {
    std::vector<ValueId> ids;
    for (const std::string& name : inputs) ids.push_back(name.empty() ? kNoValue : id(name));
    return graph().add_node(op, std::move(ids), outputs);
  }
  Builder& output(const std::string& name) {
    graph().outputs.push_back(id(name));
    return *this;
  }
  Builder& type(const std::string& name, std::vector<Dim> shape, DType dtype = DType::Float32) {
    graph()[id(name)].type = ValueType::tensor(dtype, std::move(shape));
    return *this;
  }

  /// Runs passes; the model must stay well-formed.
  passes::PassReport run(const std::vector<std::string_view>& names,
                         const passes::PassOptions& options = {}) {
    verify(model);
    return exec::rewrites::run(model, names, options, passes::Checks::Verify);
  }
  /// "Conv(x,w)->y Relu(y)->z".
  std::string text() const { return text_of(model.graph); }

  static std::string text_of(const Graph& graph) {
    std::string text;
    for (const Node& node : graph.nodes) {
      if (!text.empty()) text += ' ';
      text += (node.domain.empty() ? "" : node.domain + ".") + node.op_type + "(" +
              list(graph, node.inputs) + ")->" + list(graph, node.outputs);
    }
    return text;
  }
  static std::string list(const Graph& graph, const std::vector<ValueId>& ids) {
    std::string text;
    for (const ValueId each : ids) {
      if (!text.empty()) text += ',';
      text += each == kNoValue ? "_" : graph[each].name;
    }
    return text;
  }
};

/// Dimensions from numbers; -1 is the symbol "n".
inline std::vector<Dim> dims(std::initializer_list<std::int64_t> numbers) {
  std::vector<Dim> result;
  for (const std::int64_t number : numbers) {
    result.push_back(number < 0 ? Dim{.value = -1, .symbol = "n"}
                                : Dim{.value = number, .symbol = {}});
  }
  return result;
}

/// A body that reads `name` of the graph around it: Identity(name) -> out.
inline GraphBox capture(const std::string& name, const std::string& out) {
  Graph body;
  Value value;
  value.name = name;
  value.captured = true;
  const ValueId outer = body.add_value(std::move(value));
  body.add_node("Relu", {outer}, {out});
  body.outputs.push_back(body.find(out));
  return GraphBox(std::move(body));
}

/// Adds an If that reads `name` inside both branches and makes `out`.
inline void add_if_reading(Builder& b, const std::string& name, const std::string& out) {
  b.constant(out + "_cond", Tensor::of<bool>({}, {true}));
  Node& node = b.node("If", {out + "_cond"}, {out});
  node.set("then_branch", capture(name, out + "_then"));
  node.set("else_branch", capture(name, out + "_else"));
}

}  // namespace quench::testing
