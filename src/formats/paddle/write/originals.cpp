// SPDX-License-Identifier: Apache-2.0
// Finds the operators of a program that are still whole.
#include "formats/paddle/write/originals.h"

#include <algorithm>

#include "formats/foreign.h"
#include "formats/paddle/rows.h"
#include "formats/paddle/write/pir_original.h"

namespace quench::paddle::write {
namespace {

bool is_variable(const std::string& text) { return text.starts_with(':'); }

/// The variables that hold arrays of tensors.
std::set<std::string> arrays_of(const ProgramDesc& program) {
  std::set<std::string> names;
  for (const BlockDesc& block : program.blocks()) {
    for (const OpDesc& op : block.ops()) {
      if (op.type() != "write_to_array") continue;
      for (const OpDesc::Var& var : op.outputs()) {
        names.insert(var.arguments().begin(), var.arguments().end());
      }
    }
  }
  return names;
}

/// Those of some variables that an operator reads or writes.
std::set<std::string> named_by(const OpDesc& op, const std::set<std::string>& names) {
  std::set<std::string> found;
  for (const auto* list : {&op.inputs(), &op.outputs()}) {
    for (const OpDesc::Var& var : *list) {
      for (const std::string& name : var.arguments()) {
        if (names.contains(name)) found.insert(name);
      }
    }
  }
  return found;
}

}  // namespace

Originals::Originals(const Model& model, ProgramDesc program, Inner inner)
    : graph_(model.graph), inner_(inner), uses_(model.graph), program_(std::move(program)) {
  origins_.resize(graph_.nodes.size());
  if (program_.blocks_size() == 0) return;
  if (inner == Inner::Blocks) find_constants();
  find_groups();
}

ProgramDesc original_program(const Model& model) {
  ProgramDesc program;
  const auto text = foreign_of(model.foreign, kProgramForeign);
  if (text && !program.ParseFromArray(text->data(), static_cast<int>(text->size()))) {
    program.Clear();
  }
  return program;
}

void Originals::find_groups() {
  for (const VarDesc& var : program_.blocks(0).vars()) {
    const auto& dims = var.type().lod_tensor().tensor().dims();
    if (var.persistable()) shapes_.emplace(var.name(), Shape(dims.begin(), dims.end()));
  }
  std::map<int, Group> groups;
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    origins_[i] = origin_of(graph_.nodes[i].foreign);
    const auto& origin = origins_[i];
    if (!origin || origin->block != program_.blocks(0).idx() || origin->op < 0 ||
        origin->op >= program_.blocks(0).ops_size()) {
      continue;
    }
    Group& group = groups[origin->op];
    group.op = origin->op;
    group.nodes.push_back(static_cast<NodeId>(i));
  }
  // What writes and reads an array stays together, or all of it is written anew.
  const std::set<std::string> arrays = arrays_of(program_);
  std::set<std::string> without;
  std::size_t before = 0;
  do {
    before = without.size();
    keep(groups, without);
    for (const auto& [op, group] : groups) {
      if (last_.contains(group.nodes.back())) continue;
      without.merge(named_by(program_.blocks(0).ops(op), arrays));
    }
  } while (without.size() > before);
}

void Originals::keep(const std::map<int, Group>& groups, const std::set<std::string>& without) {
  called_.clear();
  holders_.clear();
  last_.clear();
  inside_.clear();
  for (const auto& [op, group] : groups) {
    if (!named_by(program_.blocks(0).ops(op), without).empty() || !whole(group)) continue;
    call_outputs(group);
    last_[group.nodes.back()] = group;
    inside_.insert(group.nodes.begin(), group.nodes.end());
  }
}

/// All its nodes are there, in their order, with the same attributes, and joined as they were.
bool Originals::whole(const Group& group) const {
  for (std::size_t i = 0; i < group.nodes.size(); ++i) {
    const Origin& origin = *origins_[static_cast<std::size_t>(group.nodes[i])];
    const Node& node = graph_.nodes[static_cast<std::size_t>(group.nodes[i])];
    if (origin.place != static_cast<int>(i) ||
        origin.count != static_cast<int>(group.nodes.size()) || !same(group, node, origin)) {
      return false;
    }
  }
  if (program_.blocks(0).ops(group.op).type().empty()) return false;
  if (!together(group) || !alone(group) || !has_form(group)) return false;
  return has_block(program_.blocks(0).ops(group.op)) ? keeps_names(group) : covers(group);
}

/// Regions are no blocks: what a program has of those is written anew.
bool Originals::has_form(const Group& group) const {
  const OpDesc& op = program_.blocks(0).ops(group.op);
  const auto from_pir = [](const OpDesc::Attr& attr) { return attr.name() == kPirPlace; };
  return inner_ == Inner::Blocks || std::ranges::any_of(op.attrs(), from_pir) ||
         std::ranges::none_of(group.nodes, [&](NodeId id) {
           return !subgraphs(graph_.nodes[static_cast<std::size_t>(id)]).empty();
         });
}

bool Originals::same(const Group& group, const Node& node, const Origin& origin) const {
  if (origin.form.empty() || form_of(node) != origin.form ||
      node.inputs.size() != origin.inputs.size() || node.outputs.size() != origin.outputs.size()) {
    return false;
  }
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const std::string& then = origin.inputs[i];
    const ValueId now = node.inputs[i];
    if (is_variable(then)) {
      if (now == kNoValue) return false;
    } else if (then.empty() || now == kNoValue) {
      if (now != kNoValue || !then.empty()) return false;
    } else if (then[0] == '=') {
      const Tensor* constant = graph_.constant(now);
      if (constant == nullptr || form_of(*constant) != then) return false;
    } else {
      bool found = false;
      for (std::size_t k = 0; k < group.nodes.size() && !found; ++k) {
        const Node& maker = graph_.nodes[static_cast<std::size_t>(group.nodes[k])];
        for (std::size_t m = 0; m < maker.outputs.size() && !found; ++m) {
          found =
              maker.outputs[m] == now && then == "#" + std::to_string(k) + "." + std::to_string(m);
        }
      }
      if (!found) return false;
    }
  }
  return true;
}

/// Nobody else reads what it makes before its last node, and a variable is one value throughout.
bool Originals::together(const Group& group) const {
  std::set<ValueId> made;
  std::map<std::string, ValueId> variables;
  for (const NodeId id : group.nodes) {
    const Node& node = graph_.nodes[static_cast<std::size_t>(id)];
    const Origin& origin = *origins_[static_cast<std::size_t>(id)];
    made.insert(node.outputs.begin(), node.outputs.end());
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!is_variable(origin.inputs[i])) continue;
      const auto [known, fresh] = variables.try_emplace(origin.inputs[i], node.inputs[i]);
      if (!fresh && known->second != node.inputs[i]) return false;
    }
  }
  for (NodeId id = group.nodes.front(); id < group.nodes.back(); ++id) {
    if (std::ranges::find(group.nodes, id) != group.nodes.end()) continue;
    for (const ValueId input : graph_.nodes[static_cast<std::size_t>(id)].inputs) {
      if (made.contains(input)) return false;
    }
  }
  return true;
}

/// What it makes for itself, nobody else reads.
bool Originals::alone(const Group& group) const {
  for (const NodeId id : group.nodes) {
    const Node& node = graph_.nodes[static_cast<std::size_t>(id)];
    const Origin& origin = *origins_[static_cast<std::size_t>(id)];
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNoValue || is_variable(origin.outputs[i])) continue;
      const auto value = static_cast<std::size_t>(node.outputs[i]);
      const auto outside = [&](NodeId reader) {
        return std::ranges::find(group.nodes, reader) == group.nodes.end();
      };
      if (uses_.is_output[value] || std::ranges::any_of(uses_.consumers[value], outside)) {
        return false;
      }
    }
  }
  return true;
}

/// Every variable that the operator reads is one that its nodes read: what was rewritten while it
/// was read, as quantised programs are, has others.
bool Originals::covers(const Group& group) const {
  std::set<std::string> known;
  for (const NodeId id : group.nodes) {
    const Origin& origin = *origins_[static_cast<std::size_t>(id)];
    for (const std::string& input : origin.inputs) {
      if (is_variable(input)) known.insert(input.substr(1));
    }
    known.insert(origin.captured.begin(), origin.captured.end());
  }
  for (const auto& [name, tensor] : restored(group)) known.insert(name);
  for (const OpDesc::Var& var : program_.blocks(0).ops(group.op).inputs()) {
    for (const std::string& name : var.arguments()) {
      if (!known.contains(name)) return false;
    }
  }
  return true;
}

std::map<std::string, Tensor> Originals::restored(const Group& group) const {
  const OpDesc& op = program_.blocks(0).ops(group.op);
  const OpRow* row = find_row(op.type());
  if (row == nullptr || row->restore == nullptr) return {};
  Restored result{.graph = graph_, .nodes = {}, .inputs = {}, .parameters = {}};
  for (const NodeId id : group.nodes) {
    result.nodes.push_back(&graph_.nodes[static_cast<std::size_t>(id)]);
  }
  for (const OpDesc::Var& var : op.inputs()) {
    result.inputs[var.parameter()] = {var.arguments().begin(), var.arguments().end()};
  }
  row->restore(result);
  return std::move(result.parameters);
}

/// Reading gives parameters the shape that our operators want; this one wants its own.
std::string Originals::input(const std::string& name, ValueId value, Writer& writer) const {
  const Tensor* tensor = graph_.constant(value);
  const auto shape = shapes_.find(name);
  if (tensor == nullptr || shape == shapes_.end() || shape->second == tensor->shape() ||
      num_elements(shape->second) != tensor->size()) {
    return writer.variable(value);
  }
  return writer.derived(value, name, tensor->reshaped(shape->second));
}

bool Originals::write(NodeId id, Writer& writer) const {
  if (!inside_.contains(id)) return false;
  const auto found = last_.find(id);
  if (found == last_.end()) return true;
  const OpDesc& op = program_.blocks(0).ops(found->second.op);
  if (has_block(op)) {
    write_blocks(found->second, writer);
    return true;
  }
  std::map<std::string, std::string> inputs;
  std::map<std::string, std::string> outputs;
  for (const auto& [name, tensor] : restored(found->second)) {
    inputs[name] = writer.restored(name, tensor);
  }
  for (const NodeId each : found->second.nodes) {
    const Node& node = graph_.nodes[static_cast<std::size_t>(each)];
    const Origin& origin = *origins_[static_cast<std::size_t>(each)];
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (is_variable(origin.inputs[i])) {
        const std::string name = origin.inputs[i].substr(1);
        inputs[name] = input(name, node.inputs[i], writer);
      }
    }
    const std::vector<ValueId> captured = captured_values(graph_, node);
    for (std::size_t i = 0; i < std::min(captured.size(), origin.captured.size()); ++i) {
      inputs[origin.captured[i]] = writer.variable(captured[i]);
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (is_variable(origin.outputs[i])) {
        outputs[origin.outputs[i].substr(1)] = writer.variable(node.outputs[i]);
      }
    }
  }
  writer.copy(program_.blocks(0), op, inputs, outputs);
  return true;
}

const OpDesc* Originals::port(std::string_view type, const std::string& variable) const {
  if (program_.blocks_size() == 0) return nullptr;
  for (const OpDesc& op : program_.blocks(0).ops()) {
    if (op.type() != type) continue;
    for (const OpDesc::Var& var : type == "feed" ? op.outputs() : op.inputs()) {
      if (var.arguments_size() == 1 && var.arguments(0) == variable) return &op;
    }
  }
  return nullptr;
}

}  // namespace quench::paddle::write
