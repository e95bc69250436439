// SPDX-License-Identifier: Apache-2.0
// Blocks inside operators, while they are written.
#include <algorithm>

#include "base/format.h"
#include "formats/paddle/write/writer.h"

namespace quench::paddle::write {
namespace {

bool is_block(const OpDesc::Attr& attr) { return attr.type() == BLOCK; }

/// Variables that operators of a block use and neither it nor a block inside it declares.
void add_free(const ProgramDesc& program, const BlockDesc& block, std::set<std::string>& free) {
  std::set<std::string> used = variables_of(block);
  for (const OpDesc& op : block.ops()) used.merge(outer_variables(program, op));
  for (const VarDesc& var : block.vars()) used.erase(var.name());
  free.merge(used);
}

}  // namespace

bool has_block(const OpDesc& op) {
  return std::ranges::any_of(op.attrs(), [](const OpDesc::Attr& attr) {
    return attr.type() == BLOCK || attr.type() == BLOCKS;
  });
}

std::set<std::string> outer_variables(const ProgramDesc& program, const OpDesc& op) {
  std::set<std::string> free;
  for (const OpDesc::Attr& attr : op.attrs()) {
    // Blocks inside come behind the blocks around them: no chain leads in a circle.
    if (is_block(attr)) add_free(program, program.blocks(attr.block_idx()), free);
  }
  return free;
}

Writer::Writer(const Graph& graph, Writer& outer)
    : graph_(graph),
      inner_(outer.inner_),
      outer_(&outer),
      block_(outer.root().program_.blocks_size()) {
  BlockDesc& block = *root().program_.add_blocks();
  block.set_idx(block_);
  block.set_parent_idx(outer.block_);
  name_values();
}

void Writer::alias(ValueId value, const std::string& outer) {
  types_.erase(graph_[value].name);
  names_[value] = outer;
}

bool Writer::taken(const std::string& name) const {
  return types_.contains(name) || copied_.contains(name) || root().parameters_.contains(name) ||
         (outer_ != nullptr && outer_->taken(name));
}

std::string Writer::scopes(std::string_view stem) {
  const std::string name = free_name(stem);
  VarDesc& var = copied_[name];
  var.set_name(name);
  var.mutable_type()->set_type(VarType::STEP_SCOPES);
  return name;
}

Names Writer::close() {
  Names outer;
  for (const std::string& name : variables_of(desc())) {
    if (types_.contains(name) || copied_.contains(name)) {
      declare(desc(), name, copied_);
    } else {
      outer.push_back(name);
    }
  }
  return outer;
}

void Writer::copy(const ProgramDesc& program, const OpDesc& op) {
  OpDesc& copied = *desc().add_ops();
  copied = op;
  copy_blocks(program, copied, block_);
}

void Writer::copy_blocks(const ProgramDesc& program, OpDesc& op, std::int32_t parent) {
  for (OpDesc::Attr& attr : *op.mutable_attrs()) {
    if (!is_block(attr)) continue;
    const std::int32_t index = root().program_.blocks_size();
    BlockDesc& block = *root().program_.add_blocks();
    block = program.blocks(attr.block_idx());
    block.set_idx(index);
    block.set_parent_idx(parent);
    attr.set_block_idx(index);
    for (OpDesc& inner : *block.mutable_ops()) copy_blocks(program, inner, index);
  }
}

}  // namespace quench::paddle::write
