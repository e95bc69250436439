// SPDX-License-Identifier: Apache-2.0
// The text form of a model: one line a value or node, stable, for eyes and golden tests.
#include <algorithm>

#include "base/format.h"
#include "quench/model.h"

namespace quench {
namespace {

constexpr std::int64_t kMaxShown = 8;

std::string show(const Tensor& tensor) {
  std::string text = to_string(ValueType::of(tensor));
  if (tensor.size() > kMaxShown) return text;
  if (tensor.dtype() == DType::String) return format("{} {}", text, tensor.strings());
  if (!info(tensor.dtype()).numpy.empty() && tensor.dtype() < DType::Complex64) {
    return format("{} {{{}}}", text, fmt::join(to_float(tensor), ", "));
  }
  return text;
}

std::string show(const Attribute::Data& data) {
  struct Show {
    std::string operator()(std::monostate) const { return "<foreign>"; }
    std::string operator()(std::int64_t value) const { return std::to_string(value); }
    std::string operator()(float value) const { return format("{}f", value); }
    std::string operator()(const std::string& value) const { return format("\"{}\"", value); }
    std::string operator()(const Tensor& value) const { return show(value); }
    std::string operator()(const GraphBox& value) const {
      return format("<graph {}>", value->name);
    }
    std::string operator()(const std::vector<std::int64_t>& value) const {
      return format("{}", value);
    }
    std::string operator()(const std::vector<float>& value) const { return format("{}", value); }
    std::string operator()(const std::vector<std::string>& value) const {
      return format("{}", value);
    }
    std::string operator()(const std::vector<Tensor>& value) const {
      return format("<{} tensors>", value.size());
    }
    std::string operator()(const std::vector<GraphBox>& value) const {
      return format("<{} graphs>", value.size());
    }
  };
  return std::visit(Show{}, data);
}

std::string name_list(const Graph& graph, const std::vector<ValueId>& ids) {
  std::string text;
  for (const ValueId id : ids) {
    if (!text.empty()) text += ", ";
    text += id == kNoValue ? "_" : "%" + graph[id].name;
  }
  return text;
}

void dump_graph(const Graph& graph, const std::string& indent, std::string& text);

void dump_node(const Graph& graph, const Node& node, const std::string& indent, std::string& text) {
  std::string attributes;
  for (const Attribute& each : node.attributes) {
    attributes += attributes.empty() ? " {" : ", ";
    attributes +=
        each.name + "=" + (each.reference.empty() ? show(each.data) : "@" + each.reference);
  }
  if (!attributes.empty()) attributes += "}";
  const std::string domain = node.domain.empty() ? "" : node.domain + ".";
  text += format("{}{} = {}{}({}){}", indent, name_list(graph, node.outputs), domain, node.op_type,
                 name_list(graph, node.inputs), attributes);
  if (!node.name.empty()) text += format("  # {}", node.name);
  text += '\n';
  for (const Graph* inner : subgraphs(node)) dump_graph(*inner, indent + "  ", text);
}

void dump_graph(const Graph& graph, const std::string& indent, std::string& text) {
  text += format("{}graph {} ({}) -> ({})\n", indent, graph.name, name_list(graph, graph.inputs),
                 name_list(graph, graph.outputs));
  const std::string inner = indent + "  ";
  for (const Value& value : graph.values()) {
    if (value.constant) {
      text += format("{}const %{}: {}\n", inner, value.name, show(*value.constant));
    } else if (value.type.kind != ValueType::Kind::Unknown) {
      text += format("{}value %{}: {}\n", inner, value.name, to_string(value.type));
    }
  }
  for (const Node& node : graph.nodes) dump_node(graph, node, inner, text);
}

}  // namespace

std::string dump(const Model& model) {
  std::string text = format("model ir={}", model.ir_version);
  for (const auto& [domain, version] : model.opsets) {
    text += format(" {}={}", domain.empty() ? "onnx" : domain, version);
  }
  text += '\n';
  dump_graph(model.graph, "", text);
  for (const Function& function : model.functions) {
    text += format("function {}.{}\n", function.domain, function.name);
    dump_graph(function.body, "  ", text);
  }
  return text;
}

}  // namespace quench
