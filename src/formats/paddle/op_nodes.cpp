// SPDX-License-Identifier: Apache-2.0
// The nodes and constants that an operator becomes.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "formats/paddle/op.h"
#include "formats/paddle/translate.h"

namespace quench::paddle {

/// Helper values are called after the operator's first output.
std::string Op::stem() const {
  for (const Argument& each : item_.outputs) {
    if (!each.variables.empty()) return each.variables.front();
  }
  return item_.type;
}

std::vector<ValueId> Op::nodes(std::string_view op_type, std::vector<ValueId> inputs,
                               std::size_t num_outputs, const Attributes& attributes) {
  Node made;
  made.op_type = op_type;
  made.inputs = std::move(inputs);
  while (!made.inputs.empty() && made.inputs.back() == kNoValue) made.inputs.pop_back();
  for (const auto& [name, data] : attributes) made.set(name, data);
  for (std::size_t i = 0; i < num_outputs; ++i) {
    made.outputs.push_back(translator_.add(format("{}.{}", stem(), op_type)));
  }
  translator_.graph().nodes.push_back(std::move(made));
  return translator_.graph().nodes.back().outputs;
}

ValueId Op::node(std::string_view op_type, std::vector<ValueId> inputs,
                 const Attributes& attributes) {
  return nodes(op_type, std::move(inputs), 1, attributes).front();
}

ValueId Op::constant(Tensor tensor) {
  return translator_.add_constant(stem() + ".const", std::move(tensor));
}

ValueId Op::ints(std::vector<std::int64_t> values) {
  return constant(
      Tensor::of<std::int64_t>({std::ssize(values)}, std::span<const std::int64_t>(values)));
}

ValueId Op::as_value(const IntList& list) {
  return list.computed() ? list.value : ints(list.numbers);
}

ValueId Op::scalar(double value, DType dtype) {
  return constant(convert(Tensor::scalar(value), dtype));
}

const Tensor* Op::constant_of(ValueId value) const {
  return value == kNoValue ? nullptr : translator_.graph().constant(value);
}

ValueId Op::cast(ValueId value, DType dtype) {
  const Tensor* tensor = constant_of(value);
  if (tensor != nullptr && tensor->dtype() == dtype) return value;
  return node("Cast", {value}, {{"to", static_cast<std::int64_t>(dtype)}});
}

ValueId Op::reshape(ValueId value, std::vector<std::int64_t> shape) {
  return node("Reshape", {value, ints(std::move(shape))});
}

ValueId Op::transpose(ValueId value, std::vector<std::int64_t> perm) {
  return node("Transpose", {value}, {{"perm", std::move(perm)}});
}

ValueId Op::squeeze(ValueId value, std::vector<std::int64_t> axes) {
  return node("Squeeze", {value, ints(std::move(axes))});
}

ValueId Op::unsqueeze(ValueId value, std::vector<std::int64_t> axes) {
  return node("Unsqueeze", {value, ints(std::move(axes))});
}

ValueId Op::reduce(std::string_view op_type, ValueId value, std::vector<std::int64_t> axes,
                   bool keep) {
  // The axes are an input of ReduceSum since version 13, of the others since 18.
  constexpr int kAxesAreInput = 18;
  Attributes attributes{{"keepdims", std::int64_t{keep}}};
  std::vector<ValueId> inputs{value};
  if (!axes.empty() && (op_type == "ReduceSum" || opset() >= kAxesAreInput)) {
    inputs.push_back(ints(std::move(axes)));
  } else if (!axes.empty()) {
    attributes.emplace_back("axes", std::move(axes));
  }
  return node(op_type, std::move(inputs), attributes);
}

ValueId Op::sizes(ValueId value) { return node("Shape", {value}); }

ValueId Op::size_of(ValueId value, std::int64_t axis) {
  return node("Gather", {sizes(value), ints({axis})}, {{"axis", std::int64_t{0}}});
}

ValueId Op::slice(ValueId value, std::int64_t axis, std::int64_t start, std::int64_t end) {
  return node("Slice", {value, ints({start}), ints({end}), ints({axis})});
}

void Op::set(std::string_view output, ValueId value, std::size_t index) {
  const auto* names = variables(item_.outputs, output);
  if (names == nullptr || index >= names->size()) return;
  const std::string& name = (*names)[index];
  Graph& graph = translator_.graph();
  // A value of this operator that no variable is yet takes the variable's name.
  const bool fresh = static_cast<std::size_t>(value) >= first_value_ && !graph[value].captured &&
                     std::ranges::find(bound_, value) == bound_.end();
  if (!fresh) value = node("Identity", {value});
  translator_.rename(value, name);
  bound_.push_back(value);
  variables_[value] = name;
  translator_.define(name, value);
}

void Op::become(const std::string& variable, ValueId value) {
  translator_.rename(value, variable);
  variables_[value] = variable;
  translator_.define(variable, value);
}

void Op::alias(std::string_view output, ValueId value) {
  const auto* names = variables(item_.outputs, output);
  if (names != nullptr) translator_.define(names->front(), value);
}

void Op::finish() {
  Graph& graph = translator_.graph();
  for (std::size_t i = first_node_; i < graph.nodes.size(); ++i) {
    Node& made = graph.nodes[i];
    const std::string& name = made.outputs.empty() ? item_.type : graph[made.outputs[0]].name;
    made.name = format("{}/{}", item_.type, name);
  }
  remember(graph, first_node_, block_.index, item_.index, variables_, translator_.captured());
}

}  // namespace quench::paddle
