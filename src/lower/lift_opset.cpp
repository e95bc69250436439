// SPDX-License-Identifier: Apache-2.0
// Raises the version of ONNX's own operators.
#include <algorithm>
#include <array>

#include "base/format.h"
#include "lower/lift.h"
#include "passes/rewriter.h"
#include "quench/lower.h"

namespace quench {
namespace lower {
namespace {

/// Before this version operators broadcast in another way.
constexpr std::int64_t kOldest = 7;
/// The newest whose changes are known here.
constexpr std::int64_t kNewest = 21;

/// The least IR version of a file with these operators.
std::int64_t ir_version_for(std::int64_t opset) {
  constexpr std::array<std::pair<std::int64_t, std::int64_t>, 7> kTable = {
      {{21, 10}, {19, 9}, {15, 8}, {12, 7}, {11, 6}, {10, 5}, {9, 4}}};
  for (const auto& [from, version] : kTable) {
    if (opset >= from) return version;
  }
  return 3;
}

}  // namespace

void Lifter::ints_to_input(Node& node, std::string_view attribute, std::size_t index) {
  if (node.find(attribute) == nullptr) return;
  const auto numbers = node.get_ints(attribute);
  node.erase(attribute);
  const Shape shape = {static_cast<std::int64_t>(numbers.size())};
  set_input(node, index, Tensor::of<std::int64_t>(shape, numbers), attribute);
}

void Lifter::set_input(Node& node, std::size_t index, Tensor tensor, std::string_view what) {
  node.inputs.resize(std::max(node.inputs.size(), index + 1), kNoValue);
  const std::string stem =
      node.outputs.empty() || node.outputs[0] == kNoValue ? "lifted" : graph_[node.outputs[0]].name;
  node.inputs[index] = graph_.add_constant(format("{}_{}", stem, what), std::move(tensor));
}

std::int64_t Lifter::rank(ValueId value) const {
  if (value == kNoValue) return -1;
  if (const Tensor* constant = graph_.constant(value)) return constant->rank();
  const auto& shape = graph_[value].type.shape;
  return shape ? static_cast<std::int64_t>(shape->size()) : -1;
}

DType Lifter::dtype(ValueId value) const {
  const DType known = value == kNoValue ? DType::Undefined : graph_[value].type.dtype;
  return known == DType::Undefined ? DType::Float32 : known;
}

ValueId Lifter::before(Node node, std::string_view stem) {
  const ValueId output = graph_.add_fresh(stem);
  node.outputs = {output};
  done_.push_back(std::move(node));
  return output;
}

bool Lifter::is_used(ValueId value) const {
  return value != kNoValue && static_cast<std::size_t>(value) < used_.size() &&
         used_[static_cast<std::size_t>(value)];
}

void Lifter::refuse(const Node& node, std::string_view reason) const {
  fail(ErrorKind::Unsupported, "the {} cannot be raised from operator version {} to {}: {}",
       label(graph_, node), from_, to_, reason);
}

void Lifter::lift(Node& node) {
  for (Graph* inner : passes::mutable_subgraphs(node)) Lifter(*inner, from_, to_).run();
  if (!node.domain.empty() && node.domain != "ai.onnx") return;
  for (const LiftStep& step : lift_steps()) {
    const bool passed = from_ < step.version && step.version <= to_;
    if (passed && node.op_type == step.op_type) step.apply(*this, node);
  }
}

void Lifter::run() {
  const Uses uses(graph_);
  used_.resize(graph_.values().size());
  for (std::size_t i = 0; i < used_.size(); ++i) {
    used_[i] = uses.is_output[i] || !uses.consumers[i].empty();
  }
  std::vector<Node> nodes = std::move(graph_.nodes);
  for (Node& node : nodes) {
    lift(node);
    done_.push_back(std::move(node));
    std::ranges::move(after_, std::back_inserter(done_));
    after_.clear();
  }
  graph_.nodes = std::move(done_);
}

}  // namespace lower

void lift_opset(Model& model, std::int64_t opset) {
  const std::int64_t from = model.opset();
  if (from >= opset) return;
  if (opset > lower::kNewest) {
    fail(ErrorKind::Unsupported, "cannot raise operators to version {}: {} is the newest known",
         opset, lower::kNewest);
  }
  if (from != 0 && from < lower::kOldest) {
    fail(ErrorKind::Unsupported,
         "the model uses operators of version {}; versions before {} broadcast in another way: "
         "export it again",
         from, lower::kOldest);
  }
  infer_types(model);  // some changes depend on ranks and element types
  if (from != 0) lower::Lifter(model.graph, from, opset).run();
  for (Function& function : model.functions) {
    const auto own = function.opsets.find("");
    if (own == function.opsets.end() || own->second >= opset) continue;
    lower::Lifter(function.body, own->second, opset).run();
    own->second = opset;
  }
  model.opsets[""] = opset;
  model.ir_version = std::max(model.ir_version, lower::ir_version_for(opset));
}

}  // namespace quench
