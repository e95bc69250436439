// SPDX-License-Identifier: Apache-2.0
// Builds one-node models from a line of a table, and types from their text form.
#pragma once

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "quench/error.h"
#include "quench/model.h"

namespace quench::testing {

/// The type that to_string shows as `text`, such as "float32[N,3,?]" or "int64[...]".
inline ValueType parse_type(std::string_view text) {
  const std::size_t open = text.find('[');
  ValueType type = ValueType::tensor(dtype_from_name(text.substr(0, open)));
  std::string_view list = text.substr(open + 1, text.size() - open - 2);
  if (list == "...") return type;
  type.shape.emplace();
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view part = list.substr(0, comma);
    Dim dim;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), dim.value);
    if (error != std::errc() || end != part.data() + part.size()) {
      dim = Dim{-1, part == "?" ? std::string() : std::string(part)};
    }
    type.shape->push_back(dim);
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return type;
}

/// An input of a node under test: left out, of a type, or constant.
using Argument = std::variant<std::monostate, std::string, Tensor>;

/// One operator, what goes in, and the types that must come out.
struct OpCase {
  std::string op;
  std::vector<Argument> inputs;
  std::vector<std::pair<std::string, Attribute::Data>> attributes;
  std::vector<std::string> outputs;
  std::int64_t opset = 21;
  std::string domain = {};
};

inline Tensor ints(std::vector<std::int64_t> values) {
  return Tensor::of<std::int64_t>({static_cast<std::int64_t>(values.size())},
                                  std::span<const std::int64_t>(values));
}
inline Tensor floats(std::vector<float> values) {
  return Tensor::of<float>({static_cast<std::int64_t>(values.size())},
                           std::span<const float>(values));
}
inline std::vector<std::int64_t> list(std::vector<std::int64_t> values) { return values; }

inline Value named_value(std::string name) {
  Value value;
  value.name = std::move(name);
  return value;
}

inline ValueId add_input(Graph& graph, const std::string& name, std::string_view type) {
  const ValueId id = graph.add_value(named_value(name));
  graph[id].type = parse_type(type);
  graph.inputs.push_back(id);
  return id;
}

inline Model make_model(const OpCase& op) {
  Model model;
  model.opsets = {{"", op.opset}, {"com.microsoft", 1}};
  std::vector<ValueId> inputs;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const std::string name = "in" + std::to_string(i);
    if (const auto* type = std::get_if<std::string>(&op.inputs[i])) {
      inputs.push_back(add_input(model.graph, name, *type));
    } else if (const auto* tensor = std::get_if<Tensor>(&op.inputs[i])) {
      inputs.push_back(model.graph.add_constant(name, *tensor));
    } else {
      inputs.push_back(kNoValue);
    }
  }
  std::vector<std::string> names;
  for (std::size_t i = 0; i < op.outputs.size(); ++i) names.push_back("out" + std::to_string(i));
  Node& node = model.graph.add_node(op.op, inputs, names);
  node.name = "tested";
  node.domain = op.domain;
  for (const auto& [name, data] : op.attributes) node.set(name, data);
  model.graph.outputs = node.outputs;
  return model;
}

inline std::string type_of(const Model& model, std::string_view name) {
  return to_string(model.graph[model.graph.find(name)].type);
}

}  // namespace quench::testing
