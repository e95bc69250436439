// SPDX-License-Identifier: Apache-2.0
// Removes nodes whose output is their input, unchanged.
#include <algorithm>
#include <array>

#include "passes/rewriter.h"

namespace quench::passes {
namespace {

/// Which nodes of a graph only hand on their first input.
class NoOps {
 public:
  explicit NoOps(const Rewriter& view) : view_(view) {}

  bool contains(const Node& node) const {
    if (!node.domain.empty() || node.inputs.empty() || node.inputs[0] == kNoValue ||
        node.outputs.empty() || node.outputs[0] == kNoValue || view_.has_extra_outputs(node)) {
      return false;
    }
    if (belongs_to_operator(node)) return false;
    const std::string& op = node.op_type;
    if (op == "Identity") return true;
    if (op == "Dropout") return dropout(node);
    if (op == "Cast") return cast(node);
    if (op == "Pad") return pad(node);
    if (op == "Reshape") return reshape(node) || same_static_shape(node);
    if (op == "Flatten") return flatten(node) || same_static_shape(node);
    if (op == "Transpose") return transpose(node);
    static constexpr std::array kOfOne = {"Concat", "Sum", "Max", "Min", "Mean"};
    return node.inputs.size() == 1 && std::ranges::find(kOfOne, op) != kOfOne.end();
  }

 private:
  /// One of several nodes that computes the shape an operator of another format had: nobody gains
  /// by its removal, and only with all of them is the operator written back as it stood.
  bool belongs_to_operator(const Node& node) const {
    const ValueType& made = type(node.outputs[0]);
    return !node.foreign.empty() && made.kind == ValueType::Kind::Tensor &&
           made.dtype != DType::Undefined && !is_real(made.dtype);
  }

  const ValueType& type(ValueId id) const { return view_.graph()[id].type; }

  std::optional<std::vector<std::int64_t>> ints(ValueId id) const {
    const Tensor* tensor = view_.constant(id);
    if (tensor == nullptr || tensor->dtype() != DType::Int64) return std::nullopt;
    const auto data = tensor->data<std::int64_t>();
    return std::vector<std::int64_t>(data.begin(), data.end());
  }

  bool dropout(const Node& node) const {
    if (view_.opset() < 7) return node.get_int("is_test", 0) != 0;
    const ValueId training = node.input(2);
    if (training == kNoValue) return true;
    const Tensor* flag = view_.constant(training);
    return flag != nullptr && flag->dtype() == DType::Bool && flag->size() == 1 &&
           !flag->data<bool>()[0];
  }

  bool cast(const Node& node) const {
    const ValueType& from = type(node.inputs[0]);
    return from.kind == ValueType::Kind::Tensor && from.dtype != DType::Undefined &&
           static_cast<std::int64_t>(from.dtype) == node.get_int("to", 0);
  }

  bool pad(const Node& node) const {
    std::optional<std::vector<std::int64_t>> pads = node.get_ints("pads");
    if (node.inputs.size() > 1) pads = ints(node.inputs[1]);
    return pads && !pads->empty() &&
           std::ranges::all_of(*pads, [](auto each) { return each == 0; });
  }

  /// A constant target that copies or repeats each dimension; one may be left to be computed.
  bool reshape(const Node& node) const {
    const auto& shape = type(node.inputs[0]).shape;
    const auto target = ints(node.input(1));
    if (!shape || !target || target->size() != shape->size()) return false;
    const bool zero_copies = node.get_int("allowzero", 0) == 0;
    for (std::size_t i = 0; i < target->size(); ++i) {
      const std::int64_t wanted = (*target)[i];
      const bool copies = wanted == 0 && zero_copies;
      if (wanted != -1 && !copies && (*shape)[i].value != wanted) return false;
    }
    return true;
  }

  bool flatten(const Node& node) const {
    const auto& shape = type(node.inputs[0]).shape;
    const std::int64_t axis = node.get_int("axis", 1);
    return shape && shape->size() == 2 && (axis == 1 || axis == -1);
  }

  bool same_static_shape(const Node& node) const {
    const auto from = type(node.inputs[0]).static_shape();
    return from && from == type(node.outputs[0]).static_shape();
  }

  bool transpose(const Node& node) const {
    const std::vector<std::int64_t> perm = node.get_ints("perm");
    if (node.find("perm") == nullptr) {  // reverses
      const auto& shape = type(node.inputs[0]).shape;
      return shape && shape->size() < 2;
    }
    for (std::size_t i = 0; i < perm.size(); ++i) {
      if (perm[i] != static_cast<std::int64_t>(i)) return false;
    }
    return true;
  }

  const Rewriter& view_;
};

/// Removes a no-op by letting its readers read its input, or, where the name of its output must
/// survive, by letting the node before it make that output.
void bypass(Rewriter& rewriter, NodeId id) {
  const ValueId in = rewriter.node(id).inputs[0];
  const ValueId out = rewriter.node(id).outputs[0];
  if (rewriter.may_rename(out)) {
    rewriter.merge(out, in, id);
  } else if (rewriter.maker(in) != kNoNode && rewriter.may_rename(in)) {
    rewriter.merge(in, out, id);
  }
}

void sweep(Rewriter& rewriter) {
  const NoOps no_ops(rewriter);
  for (NodeId id = 0; id < rewriter.num_nodes(); ++id) {
    if (no_ops.contains(rewriter.node(id))) bypass(rewriter, id);
  }
}

}  // namespace

PassReport remove_identity(Model& model, const PassOptions& options) {
  return rewrite_graphs(model, options, sweep);
}

}  // namespace quench::passes
