// SPDX-License-Identifier: Apache-2.0
// converter_lite's table of grids.
#include <optional>

#include "base/format.h"
#include "pipeline/debug_info.h"
#include "plan/facts.h"
#include "report/csv.h"

namespace quench {
namespace {

std::string number(double value) { return format("{:.6g}", value); }

bool is_cast(const Node& node) {
  return node.op_type == "QuantizeLinear" || node.op_type == "DequantizeLinear";
}

/// A row for each channel of a grid; nothing where its scale is not a constant.
std::string grid_rows(const Graph& graph, const Node& node, ValueId integers, const Tensor* scale,
                      const Tensor* zero) {
  if (scale == nullptr) return {};
  const std::vector<float> scales = to_float(*scale);
  const std::vector<float> zeros = zero == nullptr ? std::vector<float>() : to_float(*zero);
  const ValueType& type = graph[integers].type;
  const Tensor* stored = graph.constant(integers);
  const auto shape = stored != nullptr ? std::optional(stored->shape()) : type.static_shape();
  const DType dtype = stored != nullptr ? stored->dtype() : type.dtype;
  std::string dims;
  std::int64_t elements = 1;
  for (const std::int64_t dim : shape.value_or(Shape())) {
    dims += format("{} ", dim);
    elements *= dim;
  }
  std::string text;
  for (std::size_t i = 0; i < scales.size(); ++i) {
    text += debug_line({plan::key_of(graph, node), node.op_type, graph[integers].name,
                        format("{}", shape ? elements : 0), dims,
                        number(static_cast<double>(scales[i])),
                        number(i < zeros.size() ? static_cast<double>(zeros[i]) : 0),
                        format("{}", dtype == DType::Undefined ? 8 : info(dtype).bits), "1", "0"});
  }
  return text;
}

std::string cast_rows(const Graph& graph, const Node& node, const Node& cast, ValueId integers) {
  return grid_rows(graph, node, integers, graph.constant(cast.input(1)),
                   graph.constant(cast.input(2)));
}

const Node* only_reader(const Graph& graph, const Uses& uses, const Node& node,
                        std::string_view op) {
  const NodeId reader = uses.only_consumer(node.outputs[0]);
  if (reader < 0) return nullptr;
  const Node& found = graph.nodes[static_cast<std::size_t>(reader)];
  return found.op_type == op ? &found : nullptr;
}

/// The scale of the weight of an integer product: a Cast, and a Mul whose factor is that constant
/// or the constant times the scale of the input.
const Tensor* product_scale(const Graph& graph, const Uses& uses, const Node& product) {
  const Node* cast = only_reader(graph, uses, product, "Cast");
  const Node* scaled = cast == nullptr ? nullptr : only_reader(graph, uses, *cast, "Mul");
  if (scaled == nullptr) return nullptr;
  const auto constant = [&](const Node& node) -> const Tensor* {
    const Tensor* first = graph.constant(node.inputs[0]);
    return first != nullptr ? first : graph.constant(node.inputs[1]);
  };
  if (const Tensor* scale = constant(*scaled)) return scale;
  for (const ValueId input : scaled->inputs) {
    const NodeId maker = uses.producer[static_cast<std::size_t>(input)];
    if (maker < 0) continue;
    const Node& factor = graph.nodes[static_cast<std::size_t>(maker)];
    if (factor.op_type == "Mul") return constant(factor);
  }
  return nullptr;
}

/// The grids of what a node reads, then of what it makes.
std::string rows_of(const Graph& graph, const Uses& uses, const Node& node) {
  std::string text;
  if (node.op_type == "MatMulInteger" && graph.constant(node.inputs[1]) != nullptr) {
    const Tensor* scale = product_scale(graph, uses, node);
    text += grid_rows(graph, node, node.inputs[1], scale, graph.constant(node.input(3)));
  }
  for (const ValueId input : node.inputs) {
    const NodeId maker = input == kNoValue ? -1 : uses.producer[static_cast<std::size_t>(input)];
    if (maker < 0) continue;
    const Node& cast = graph.nodes[static_cast<std::size_t>(maker)];
    if (cast.op_type == "DequantizeLinear") text += cast_rows(graph, node, cast, cast.inputs[0]);
  }
  for (const ValueId output : node.outputs) {
    if (output == kNoValue) continue;
    for (const NodeId reader : uses.consumers[static_cast<std::size_t>(output)]) {
      const Node& cast = graph.nodes[static_cast<std::size_t>(reader)];
      if (cast.op_type != "QuantizeLinear" || cast.inputs[0] != output) continue;
      text += cast_rows(graph, node, cast, cast.outputs[0]);
    }
  }
  return text;
}

}  // namespace

std::string debug_line(std::vector<std::string> fields) {
  fields.emplace_back();
  return report::csv_line(fields);
}

std::string grids_table(const Graph& graph) {
  std::string text = debug_line({"NodeName", "NodeType", "TensorName", "ElementsNum", "Dims",
                                 "Scale", "ZeroPoint", "Bits", "CorrectionVar", "CorrectionMean"});
  const Uses uses(graph);
  for (const Node& node : graph.nodes) {
    if (!is_cast(node)) text += rows_of(graph, uses, node);
  }
  return text;
}

}  // namespace quench
