// SPDX-License-Identifier: Apache-2.0
// Where a node came from, as text.
#include "formats/paddle/origin.h"

#include <algorithm>
#include <charconv>

#include "base/format.h"
#include "formats/fingerprint.h"
#include "formats/foreign.h"

namespace quench::paddle {
namespace {

constexpr char kField = '\x1f';
constexpr char kItem = '\x1e';

std::vector<std::string> split(std::string_view text, char by) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = text.find(by);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string join(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text.append(1, kItem).append(item);
  return text;
}

std::vector<std::string> items_of(const std::string& text) {
  if (text.empty()) return {};
  return split(std::string_view(text).substr(1), kItem);
}

bool to_number(const std::string& text, int& number) {
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && rest == end;
}

std::string hash(std::string_view bytes) {
  Fingerprint fingerprint;
  fingerprint.add(bytes);
  return fingerprint.text();
}

/// A graph inside a node: its nodes, and how values go between them.
std::string graph_form(const Graph& graph) {
  std::string text;
  const auto add = [&](const std::vector<ValueId>& values) {
    for (const ValueId value : values) {
      text += kItem;
      if (value == kNoValue) continue;
      text += graph[value].constant ? form_of(*graph[value].constant) : graph[value].name;
    }
    text += kField;
  };
  add(graph.inputs);
  for (const Node& node : graph.nodes) {
    text += form_of(node);
    add(node.inputs);
    add(node.outputs);
  }
  add(graph.outputs);
  return text;
}

struct Text {
  std::string& out;
  bool operator()(std::monostate) const { return false; }
  bool operator()(const GraphBox& graph) const { return out += graph_form(*graph), true; }
  bool operator()(const std::vector<GraphBox>&) const { return false; }
  bool operator()(const Tensor& tensor) const { return out += form_of(tensor), true; }
  bool operator()(const std::vector<Tensor>& tensors) const {
    for (const Tensor& tensor : tensors) out += form_of(tensor);
    return true;
  }
  bool operator()(const std::string& text) const { return out += text, true; }
  template <typename T>
  bool operator()(const std::vector<T>& values) const {
    out += format("{}", fmt::join(values, ","));
    return true;
  }
  template <typename T>
  bool operator()(const T& value) const {
    out += format("{}", value);
    return true;
  }
};

}  // namespace

std::string to_foreign(const Origin& origin) {
  return make_foreign(
      kProgramForeign,
      format("{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}", origin.block, kField, origin.op, kField,
             origin.place, kField, origin.count, kField, origin.form, kField, join(origin.inputs),
             kField, join(origin.outputs), kField, join(origin.captured)));
}

std::optional<Origin> origin_of(std::string_view foreign) {
  const auto text = foreign_of(foreign, kProgramForeign);
  if (!text) return std::nullopt;
  const std::vector<std::string> fields = split(*text, kField);
  Origin origin;
  if (fields.size() != 8 || !to_number(fields[0], origin.block) ||
      !to_number(fields[1], origin.op) || !to_number(fields[2], origin.place) ||
      !to_number(fields[3], origin.count)) {
    return std::nullopt;
  }
  origin.form = fields[4];
  origin.inputs = items_of(fields[5]);
  origin.outputs = items_of(fields[6]);
  origin.captured = items_of(fields[7]);
  return origin;
}

std::string form_of(const Tensor& tensor) {
  const std::span<const std::byte> bytes = tensor.bytes();
  const std::string sum = hash({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  return format("={}{}:{}", info(tensor.dtype()).name, to_string(tensor.shape()), sum);
}

std::string form_of(const Node& node) {
  std::string text = node.domain + "." + node.op_type;
  for (const Attribute& attribute : node.attributes) {
    text += kItem + attribute.name + "=";
    if (!std::visit(Text{text}, attribute.data)) return {};
  }
  return format("{}:{}", node.op_type, hash(text));
}

std::vector<ValueId> captured_values(const Graph& graph, const Node& node) {
  std::vector<ValueId> values;
  for (const std::string& name : captured_names(node)) {
    // Graphs deeper inside read what those between make, too.
    const ValueId value = graph.find(name);
    if (value != kNoValue && std::ranges::find(values, value) == values.end()) {
      values.push_back(value);
    }
  }
  return values;
}

void remember(Graph& graph, std::size_t first, int block, int op,
              const std::map<ValueId, std::string>& variables,
              const std::map<std::string, std::string>& captured) {
  std::map<ValueId, std::string> inner;
  for (std::size_t i = first; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      inner[node.outputs[k]] = format("#{}.{}", i - first, k);
    }
  }
  const auto named = [&](ValueId value, bool output) -> std::string {
    if (value == kNoValue) return {};
    if (!output && inner.contains(value)) return inner.at(value);
    const auto variable = variables.find(value);
    if (variable != variables.end()) return ":" + variable->second;
    return graph[value].constant ? form_of(*graph[value].constant) : "";
  };
  for (std::size_t i = first; i < graph.nodes.size(); ++i) {
    Node& node = graph.nodes[i];
    Origin origin{.block = block,
                  .op = op,
                  .place = static_cast<int>(i - first),
                  .count = static_cast<int>(graph.nodes.size() - first),
                  .form = form_of(node),
                  .inputs = {},
                  .outputs = {},
                  .captured = {}};
    for (const ValueId value : node.inputs) origin.inputs.push_back(named(value, false));
    for (const ValueId value : node.outputs) origin.outputs.push_back(named(value, true));
    for (const ValueId value : captured_values(graph, node)) {
      const auto variable = captured.find(graph[value].name);
      origin.captured.push_back(variable == captured.end() ? "" : variable->second);
    }
    node.foreign = to_foreign(origin);
  }
}

}  // namespace quench::paddle
