// SPDX-License-Identifier: Apache-2.0
// What Paddle has another form for.
#include <map>
#include <tuple>

#include "formats/paddle/write/writer.h"

namespace quench::paddle::write {
namespace {

bool is(const Node& node, std::string_view op_type) {
  return node.domain.empty() && node.op_type == op_type;
}

template <typename T>
Tensor transposed_as(const Tensor& matrix) {
  const std::int64_t rows = matrix.shape()[0];
  const std::int64_t columns = matrix.shape()[1];
  Tensor result = Tensor::zeros(matrix.dtype(), {columns, rows});
  const std::span<const T> from = matrix.data<T>();
  const std::span<T> to = result.mutable_data<T>();
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      to[static_cast<std::size_t>(c * rows + r)] = from[static_cast<std::size_t>(r * columns + c)];
    }
  }
  return result;
}

/// A matrix of floats or bytes, transposed; undefined for others.
Tensor transposed(const Tensor& matrix) {
  if (matrix.rank() != 2) return {};
  if (matrix.dtype() == DType::Float32) return transposed_as<float>(matrix);
  if (matrix.dtype() == DType::Int8) return transposed_as<std::int8_t>(matrix);
  return {};
}

class Legalizer {
 public:
  Legalizer(Graph& graph, const std::set<std::string>& kept, bool inside = false)
      : graph_(graph), kept_(kept), inside_(inside), uses_(graph) {
    for (const Node& node : graph.nodes) {
      for (std::string& name : captured_names(node)) captured_.insert(std::move(name));
    }
  }

  void run() {
    std::vector<bool> dead(graph_.nodes.size(), false);
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      Node& node = graph_.nodes[i];
      if (is(node, "Constant")) dead[i] = lift_constant(node);
      if (is(node, "DequantizeLinear") && !captured(node)) {
        dead[i] = merge(node) || fold_bias(node);
      }
      if (is(node, "QuantizeLinear") || is(node, "DequantizeLinear")) type_of_input(node);
      if (is(node, "Gemm")) turn_weight(node);
    }
    compact(graph_, dead);
  }

 private:
  /// Graphs inside nodes read what it makes, by its name.
  bool captured(const Node& node) const { return captured_.contains(graph_[node.outputs[0]].name); }

  bool lift_constant(const Node& node) {
    const Tensor* value = node.get<Tensor>("value");
    if (value == nullptr || kept_.contains(graph_[node.outputs[0]].name) ||
        (!inside_ && uses_.is_output[static_cast<std::size_t>(node.outputs[0])])) {
      return false;
    }
    graph_[node.outputs[0]].constant = *value;
    return true;
  }

  /// One dequantisation serves all readers.
  bool merge(const Node& node) {
    if (graph_.constant(node.inputs[0]) != nullptr) return false;
    const auto [known, fresh] =
        merged_.try_emplace({node.inputs[0], node.input(1), node.input(2)}, node.outputs[0]);
    if (fresh || uses_.is_output[static_cast<std::size_t>(node.outputs[0])]) return false;
    replace_uses(graph_, node.outputs[0], known->second);
    return true;
  }

  /// Biases are floats in Paddle.
  bool fold_bias(const Node& node) {
    const Tensor* integers = graph_.constant(node.inputs[0]);
    const Tensor* scale = graph_.constant(node.input(1));
    if (integers == nullptr || scale == nullptr || integers->dtype() != DType::Int32) return false;
    if (integers->rank() > 1 || (scale->size() != 1 && scale->size() != integers->size())) {
      return false;
    }
    const std::span<const std::int32_t> from = integers->data<std::int32_t>();
    const std::vector<float> scales = to_float(*scale);
    std::vector<float> bias(from.size());
    for (std::size_t i = 0; i < bias.size(); ++i) {
      bias[i] = static_cast<float>(static_cast<double>(from[i]) *
                                   static_cast<double>(scales[scales.size() == 1 ? 0 : i]));
    }
    const ValueId folded =
        graph_.add_constant(graph_[node.outputs[0]].name,
                            Tensor::of<float>(integers->shape(), std::span<const float>(bias)));
    replace_uses(graph_, node.outputs[0], folded);
    return true;
  }

  void type_of_input(const Node& node) {
    const Value& from = graph_[node.inputs[0]];
    ValueType type = from.constant ? ValueType::of(*from.constant) : from.type;
    // Integers between two operators are floats in Paddle, too.
    type.dtype = DType::Float32;
    graph_[node.outputs[0]].type = type;
  }

  /// The weight as its layer reads it: Paddle's integer products want their scales on axis 1.
  void turn_weight(Node& node) {
    if (node.get_int("transB", 0) == 0) return;
    if (const Tensor* weight = graph_.constant(node.inputs[1])) {
      const Tensor turned = transposed(*weight);
      if (!turned.defined()) return;
      node.inputs[1] = graph_.add_constant(graph_[node.inputs[1]].name, turned);
      node.set("transB", std::int64_t{0});
      return;
    }
    const NodeId maker = uses_.producer[static_cast<std::size_t>(node.inputs[1])];
    if (maker < 0 || uses_.only_consumer(node.inputs[1]) < 0) return;
    Node& dequantize = graph_.nodes[static_cast<std::size_t>(maker)];
    const Tensor* integers = graph_.constant(dequantize.inputs[0]);
    if (!is(dequantize, "DequantizeLinear") || integers == nullptr) return;
    const Tensor turned = transposed(*integers);
    if (!turned.defined()) return;
    dequantize.inputs[0] = graph_.add_constant(graph_[dequantize.inputs[0]].name, turned);
    if (dequantize.find("axis") != nullptr) {
      dequantize.set("axis", 1 - dequantize.get_int("axis", 1));
    }
    graph_[dequantize.outputs[0]].type = ValueType::of(turned);
    graph_[dequantize.outputs[0]].type.dtype = DType::Float32;
    node.set("transB", std::int64_t{0});
  }

  Graph& graph_;
  const std::set<std::string>& kept_;
  bool inside_;  ///< its outputs may be constants
  Uses uses_;
  std::set<std::string> captured_;
  std::map<std::tuple<ValueId, ValueId, ValueId>, ValueId> merged_;
};

}  // namespace

Model legalize(Model model, const std::set<std::string>& kept) {
  (void)infer_types(model);
  Legalizer(model.graph, kept).run();
  return model;
}

void legalize_inner(Graph& graph) {
  const std::set<std::string> none;
  Legalizer(graph, none, true).run();
}

}  // namespace quench::paddle::write
