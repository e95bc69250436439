// SPDX-License-Identifier: Apache-2.0
// The PIR program that a model was read from, as Originals compare it.
#include "formats/paddle/write/pir_original.h"

#include <algorithm>
#include <set>

#include "formats/foreign.h"
#include "formats/paddle/origin.h"
#include "formats/paddle/rows.h"
#include "formats/paddle/types.h"

namespace quench::paddle::write {
namespace {

using Names = std::vector<std::string>;

void add(google::protobuf::RepeatedPtrField<OpDesc::Var>& list, const Argument& argument) {
  OpDesc::Var& var = *list.Add();
  var.set_parameter(argument.name);
  for (const std::string& name : argument.variables) var.add_arguments(name);
}

/// What gives an attribute and is a constant is no variable of ours.
bool is_given(const OpRow* row, const Argument& argument, const std::set<std::string>& constants) {
  if (row == nullptr) return false;
  for (const std::string_view token : parts_of(row->inputs, ' ')) {
    if (token == argument.name + ":" || token.starts_with(argument.name + ":")) {
      return std::ranges::all_of(argument.variables,
                                 [&](const std::string& name) { return constants.contains(name); });
    }
  }
  return false;
}

/// What is written in place has one number and several values: such operators are written anew.
bool writes_in_place(const OpItem& op) {
  for (const OpRow& row : array_rows()) {
    if (row.name == op.type) return true;
  }
  return (op.type == "while" && op.outputs.empty()) ||
         std::ranges::any_of(op.outputs, [&](const Argument& made) {
           return std::ranges::any_of(op.inputs, [&](const Argument& read) {
             return !made.variables.empty() && made.variables == read.variables;
           });
         });
}

ProgramDesc program_of(const Block& block, std::size_t count) {
  ProgramDesc program;
  BlockDesc& result = *program.add_blocks();
  result.set_idx(block.index);
  result.set_parent_idx(-1);
  for (const VarItem& var : block.vars) *result.add_vars() = declaration_of(var);
  for (std::size_t i = 0; i < count; ++i) result.add_ops();
  std::set<std::string> constants;
  for (const OpItem& op : block.ops) {
    OpDesc& desc = *result.mutable_ops(op.index);
    if (!writes_in_place(op)) desc.set_type(op.type);
    const OpRow* row = find_row(op.type);
    for (const Argument& each : op.inputs) {
      if (!is_given(row, each, constants)) add(*desc.mutable_inputs(), each);
    }
    for (const Argument& each : op.outputs) add(*desc.mutable_outputs(), each);
    OpDesc::Attr& place = *desc.add_attrs();
    place.set_name(kPirPlace);
    place.set_type(INT);
    place.set_i(op.index);
    if (op.inputs.empty() && op.type != "feed") {
      for (const Argument& each : op.outputs) {
        constants.insert(each.variables.begin(), each.variables.end());
      }
    }
  }
  return program;
}

}  // namespace

VarDesc declaration_of(const VarItem& item) {
  VarDesc var;
  var.set_name(item.name);
  var.set_persistable(item.parameter);
  var.mutable_type()->set_type(VarType::LOD_TENSOR);
  VarType::TensorDesc& tensor = *var.mutable_type()->mutable_lod_tensor()->mutable_tensor();
  const TypeRow* row = type_row(item.dtype);
  tensor.set_data_type(row == nullptr ? type_row(DType::Float32)->number : row->number);
  for (const std::int64_t size : item.shape.value_or(Shape())) tensor.add_dims(size);
  return var;
}

std::optional<PirOriginal> pir_original(const Model& model) {
  const auto text = foreign_of(model.foreign, kPirForeign);
  if (!text) return std::nullopt;
  PirOriginal original;
  const Program program =
      read_pir(std::as_bytes(std::span(text->data(), text->size())), &original.names);
  original.root = Json::parse(*text);
  const Json& ops = original.ops();
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (!ops[i]["O"].is_array()) continue;  // a parameter
    for (const Json& result : ops[i]["O"]) original.makers.emplace(pir::integer(result, "%"), i);
  }
  original.program = program_of(program.blocks.front(), ops.size());
  return original;
}

}  // namespace quench::paddle::write
