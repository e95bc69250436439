// SPDX-License-Identifier: Apache-2.0
// The state of a translation: names, scopes, blocks.
#include "base/format.h"
#include "formats/paddle/op.h"
#include "formats/paddle/rows.h"
#include "formats/paddle/translate.h"

namespace quench::paddle {

std::string Translator::unique(std::string_view stem) {
  std::string name(stem.empty() ? "_" : stem);
  for (int i = 1; !names_.insert(name).second; ++i) name = format("{}@{}", stem, i);
  return name;
}

ValueId Translator::add(std::string_view stem, ValueType type) {
  Value value;
  value.name = unique(stem);
  value.type = std::move(type);
  return graph().add_value(std::move(value));
}

void Translator::rename(ValueId value, std::string_view stem) {
  const std::string before = graph()[value].name;
  graph().rename(value, unique(stem));
  names_.erase(before);
}

ValueId Translator::add_constant(std::string_view stem, Tensor tensor) {
  const ValueId id = add(stem, ValueType::of(tensor));
  graph()[id].constant = std::move(tensor);
  return id;
}

ValueId Translator::find(std::string_view variable) {
  const auto here = scope_->values.find(variable);
  if (here != scope_->values.end()) return here->second;
  for (const Scope* scope = scope_->outer; scope != nullptr; scope = scope->outer) {
    const auto found = scope->values.find(variable);
    if (found == scope->values.end()) continue;
    Value value;
    value.name = (*scope->graph)[found->second].name;
    captured_[value.name] = variable;
    const ValueId known = graph().find(value.name);
    if (known != kNoValue) return known;
    value.captured = true;
    return graph().add_value(std::move(value));
  }
  return kNoValue;
}

ValueId Translator::lookup(std::string_view variable) {
  const ValueId found = find(variable);
  if (found == kNoValue) {
    fail(ErrorKind::BadModel,
         "nothing before it makes the variable '{}', which is no input and no parameter", variable);
  }
  return found;
}

void Translator::define(const std::string& variable, ValueId value) {
  scope_->values[variable] = value;
}

const VarItem* Translator::variable(const Block& block, std::string_view name) const {
  const Block* at = &block;
  // Blocks around blocks; their number bounds a chain that leads in a circle.
  for (std::size_t depth = 0; depth < program_.blocks.size(); ++depth) {
    auto& vars = vars_[at];
    if (vars.empty()) {
      for (const VarItem& var : at->vars) vars.emplace(var.name, &var);
    }
    const auto found = vars.find(name);
    if (found != vars.end()) return found->second;
    if (at->parent < 0) break;
    at = &program_.blocks[static_cast<std::size_t>(at->parent)];
  }
  return nullptr;
}

int Translator::num_readers(std::string_view name) const {
  if (readers_.empty()) {
    for (const Block& block : program_.blocks) {
      for (const OpItem& op : block.ops) {
        for (const Argument& argument : op.inputs) {
          for (const std::string& each : argument.variables) ++readers_[each];
        }
      }
    }
  }
  const auto found = readers_.find(name);
  return found == readers_.end() ? 0 : found->second;
}

void Translator::run_block(const Block& block) {
  for (const OpItem& item : block.ops) {
    if (item.type == "feed" || item.type == "fetch") continue;
    try {
      Op op(*this, block, item, *find_row(item.type));
      op.row_.read(op);
      op.finish();
    } catch (Error& error) {
      throw error.in(format("operator {} of block {}, '{}'", item.index, block.index, item.type));
    }
  }
}

const Block& Translator::inner_block(const Block& block, std::int64_t index) {
  const bool exists = index > 0 && index < std::ssize(program_.blocks);
  const Block* inner = exists ? &program_.blocks[static_cast<std::size_t>(index)] : nullptr;
  if (inner == nullptr || &program_.blocks[static_cast<std::size_t>(inner->parent)] != &block) {
    fail(ErrorKind::BadModel, "its block {} is not one inside block {}", index, block.index);
  }
  if (!blocks_used_.insert(index).second) {
    fail(ErrorKind::BadModel, "its block {} belongs to another operator already", index);
  }
  return *inner;
}

}  // namespace quench::paddle
