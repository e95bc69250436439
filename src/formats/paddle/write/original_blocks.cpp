// SPDX-License-Identifier: Apache-2.0
// Operators with blocks inside that are still whole, and constants that operators make.
#include <algorithm>

#include "formats/paddle/program.h"
#include "formats/paddle/rows.h"
#include "formats/paddle/translate.h"
#include "formats/paddle/write/originals.h"

namespace quench::paddle::write {
namespace {

bool is_variable(const std::string& text) { return text.starts_with(':'); }

/// The variable that an operator makes which reads none; "": it is none of these.
std::string made_by_itself(const OpDesc& op) {
  for (const OpDesc::Var& input : op.inputs()) {
    if (input.arguments_size() > 0) return {};
  }
  if (op.outputs_size() != 1 || op.outputs(0).arguments_size() != 1 || has_block(op)) return {};
  return find_row(op.type()) == nullptr ? std::string() : op.outputs(0).arguments(0);
}

/// What such an operator makes: it is read, alone.
std::optional<Tensor> tensor_of(const OpDesc& op, const std::string& variable) {
  ProgramDesc program;
  BlockDesc& block = *program.add_blocks();
  block.set_idx(0);
  block.set_parent_idx(-1);
  *block.add_ops() = op;
  OpDesc& fetch = *block.add_ops();
  fetch.set_type("fetch");
  OpDesc::Var& read = *fetch.add_inputs();
  read.set_parameter("X");
  read.add_arguments(variable);
  const std::string bytes = program.SerializeAsString();
  const Model model = translate(read_desc(std::as_bytes(std::span(bytes))), {});
  const Tensor* tensor = model.graph.constant(model.graph.find(variable));
  return tensor == nullptr ? std::nullopt : std::optional(*tensor);
}

bool same_tensor(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::ranges::equal(a.bytes(), b.bytes());
}

}  // namespace

void Originals::find_constants() {
  std::set<std::string> seen;
  for (int i = 0; i < program_.blocks(0).ops_size(); ++i) {
    const OpDesc& op = program_.blocks(0).ops(i);
    const std::string variable = made_by_itself(op);
    if (variable.empty() || !seen.insert(variable).second) continue;
    const ValueId value = graph_.find(variable);
    const Tensor* now = value == kNoValue ? nullptr : graph_.constant(value);
    if (now == nullptr || uses_.consumers[static_cast<std::size_t>(value)].empty()) continue;
    const std::optional<Tensor> then = tensor_of(op, variable);
    if (then && same_tensor(*then, *now)) constants_.emplace(value, i);
  }
}

void Originals::write_constants(Writer& writer) const {
  for (const auto& [value, op] : constants_) {
    writer.make(value);
    writer.copy(program_.blocks(0), program_.blocks(0).ops(op), {}, {});
  }
}

/// Blocks inside name variables of the blocks around them: they stay as they stand where these are
/// still called so, and still what they were.
bool Originals::keeps_names(const Group& group) const {
  const std::set<std::string> used = outer_variables(program_, program_.blocks(0).ops(group.op));
  for (const std::string& name : used) {
    const auto shape = shapes_.find(name);
    if (shape == shapes_.end()) continue;
    const Tensor* tensor = graph_.constant(graph_.find(name));
    if (tensor == nullptr || tensor->shape() != shape->second) return false;
  }
  for (const NodeId id : group.nodes) {
    const Node& node = graph_.nodes[static_cast<std::size_t>(id)];
    const Origin& origin = *origins_[static_cast<std::size_t>(id)];
    const std::vector<ValueId> captured = captured_values(graph_, node);
    for (std::size_t i = 0; i < captured.size(); ++i) {
      const bool same = i < origin.captured.size() && used.contains(origin.captured[i]) &&
                        name_of(captured[i]) == origin.captured[i];
      if (!same) return false;
    }
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const bool named = is_variable(origin.inputs[i]);
      if (named && name_of(node.inputs[i]) != origin.inputs[i].substr(1)) return false;
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (is_variable(origin.outputs[i]) &&
          !can_become(node.outputs[i], origin.outputs[i].substr(1), group.nodes.back())) {
        return false;
      }
    }
  }
  return true;
}

/// Whether a value that a node makes can take a variable's name: nobody reads what has it so far.
bool Originals::can_become(ValueId value, const std::string& variable, NodeId node) const {
  const auto called = holders_.find(variable);
  const ValueId before = called == holders_.end() ? graph_.find(variable) : called->second;
  if (before == kNoValue || before == value) return true;
  // A parameter that is written would be another one in the next run.
  if (graph_.constant(before) != nullptr && !constants_.contains(before)) return false;
  return !read_behind(before, node);
}

std::string Originals::name_of(ValueId value) const {
  const auto called = called_.find(value);
  return called == called_.end() ? graph_[value].name : called->second;
}

/// What blocks write in place is called so from there on.
void Originals::call_outputs(const Group& group) {
  if (!has_block(program_.blocks(0).ops(group.op))) return;
  for (const NodeId id : group.nodes) {
    const Node& node = graph_.nodes[static_cast<std::size_t>(id)];
    const Origin& origin = *origins_[static_cast<std::size_t>(id)];
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (!is_variable(origin.outputs[i])) continue;
      const std::string name = origin.outputs[i].substr(1);
      if (graph_[node.outputs[i]].name == name) continue;
      called_[node.outputs[i]] = name;
      holders_[name] = node.outputs[i];
    }
  }
}

/// Whether a node behind this one, or the caller, reads a value.
bool Originals::read_behind(ValueId value, NodeId node) const {
  if (uses_.is_output[static_cast<std::size_t>(value)]) return true;
  for (auto i = static_cast<std::size_t>(node) + 1; i < graph_.nodes.size(); ++i) {
    const Node& behind = graph_.nodes[i];
    if (std::ranges::find(behind.inputs, value) != behind.inputs.end()) return true;
    const std::vector<std::string> captured = captured_names(behind);
    if (std::ranges::find(captured, graph_[value].name) != captured.end()) return true;
  }
  return false;
}

/// All that it names keeps its name; what it writes in place is called so from here on.
void Originals::write_blocks(const Group& group, Writer& writer) const {
  const OpDesc& op = program_.blocks(0).ops(group.op);
  for (const std::string& name : outer_variables(program_, op)) {
    if (shapes_.contains(name)) (void)writer.variable(graph_.find(name));
  }
  for (const NodeId id : group.nodes) {
    const Node& node = graph_.nodes[static_cast<std::size_t>(id)];
    for (const ValueId value : captured_values(graph_, node)) (void)writer.variable(value);
    for (const ValueId value : node.outputs) {
      const auto called = called_.find(value);
      if (called != called_.end()) writer.call(value, called->second);
    }
  }
  writer.copy(program_, op);
}

}  // namespace quench::paddle::write
