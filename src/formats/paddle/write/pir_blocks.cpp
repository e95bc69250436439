// SPDX-License-Identifier: Apache-2.0
// A PIR program as the older program it stands for, so that what nobody touched is written there
// as it stood: attributes that PIR gives as operands are attributes again.
#include <algorithm>
#include <cmath>
#include <limits>

#include "formats/foreign.h"
#include "formats/paddle/origin.h"
#include "formats/paddle/rows.h"
#include "formats/paddle/types.h"
#include "formats/paddle/write/pir_form.h"
#include "formats/paddle/write/pir_json.h"
#include "formats/paddle/write/pir_original.h"
#include "formats/paddle/write/writer.h"

namespace quench::paddle::write {
namespace {

/// What operators without inputs say of the variables they make.
using Constants = std::map<std::string, Attr::Data>;

/// Where an attribute's value comes from: computed (no data), or known.
struct Given {
  const Argument* tensors = nullptr;
  Attr::Data data;
  bool known() const { return !std::holds_alternative<std::monostate>(data); }
};

Attr::Data joined(const Argument& argument, const Constants& constants) {
  std::vector<double> all;
  for (const std::string& name : argument.variables) {
    const auto found = constants.find(name);
    if (found == constants.end()) return std::monostate();
    const std::vector<double> numbers = numbers_of(found->second);
    all.insert(all.end(), numbers.begin(), numbers.end());
  }
  return all;
}

Given given(const OpItem& op, const PirForm& form, const PirItem& item,
            const Constants& constants) {
  Given result;
  const auto note = find_attribute(*form.row, item.name);
  for (const std::string_view name : {item.name, note ? note->other_name : item.name}) {
    if (const Attr* found = op.find(name)) {
      result.data = found->data;
      return result;
    }
  }
  const auto tensors = std::ranges::find(op.inputs, item.name, &Argument::name);
  if (tensors != op.inputs.end() && !tensors->variables.empty()) {
    result.tensors = &*tensors;
    result.data = joined(*tensors, constants);
    return result;
  }
  const auto otherwise = item.otherwise ? item.otherwise : note ? note->otherwise : std::nullopt;
  const bool list = item.kind == "ints" || item.kind.ends_with('s');
  if (otherwise) result.data = pir_value(list && item.kind != "s" ? "i64s" : item.kind, *otherwise);
  return result;
}

/// The input of programs that takes a computed attribute: of two, the first is a list.
std::string_view tensor_input(const OpRow& row, const Argument& argument) {
  for (const std::string_view token : parts_of(row.inputs, ' ')) {
    const std::size_t colon = token.find(':');
    if (colon == std::string_view::npos || token.substr(0, colon) != argument.name) continue;
    const auto names = parts_of(token.substr(colon + 1), ',');
    if (names.empty()) return {};
    const bool list = argument.variables.size() > 1;
    return names.size() > 1 && !list ? names[1] : names[0];
  }
  return {};
}

std::int32_t narrowed(double value) {
  constexpr double kMost = std::numeric_limits<std::int32_t>::max();
  return std::isnan(value) ? 0 : static_cast<std::int32_t>(std::clamp(value, -kMost, kMost));
}

AttrValue attribute_value(std::string_view kind, const Attr::Data& data) {
  if (kind == "s") {
    const auto* text = std::get_if<std::string>(&data);
    return text == nullptr ? std::string() : *text;
  }
  const std::vector<double> numbers = numbers_of(data);
  if (kind == "shape") return std::vector<std::int64_t>(numbers.begin(), numbers.end());
  if (kind == "f32s" || kind == "f64s") return std::vector<float>(numbers.begin(), numbers.end());
  if (kind.ends_with('s')) {
    Ints all;
    for (const double each : numbers) all.push_back(narrowed(each));
    return all;
  }
  const double first = numbers.empty() ? 0 : numbers[0];
  if (kind == "b") return first != 0;
  if (kind == "i64") return static_cast<std::int64_t>(first);
  if (kind == "f32" || kind == "f64") return static_cast<float>(first);
  return narrowed(first);
}

/// Programs have one operator where PIR has two.
std::string_view program_name(std::string_view type) {
  if (type == "split_with_num") return "split";
  if (type == "tril" || type == "triu") return "tril_triu";
  if (type == "repeat_interleave_with_tensor_index") return "repeat_interleave";
  return type == "set_value_with_tensor" ? "set_value" : type;
}

/// False: programs have it in another form, or it is not known in which.
bool add_attributes(OpDesc& desc, const OpItem& op, const PirForm& form,
                    const Constants& constants) {
  for (const PirItem& item : form.items) {
    if (item.kind == "place") continue;
    // Programs make what their inputs are, PIR what it says.
    if (item.kind == "made") return false;
    const Given value = given(op, form, item, constants);
    if (value.known()) {
      Op(desc).set(std::string(item.name).c_str(), attribute_value(item.kind, value.data));
      continue;
    }
    if (value.tensors == nullptr) return false;
    const std::string_view input = tensor_input(*form.row, *value.tensors);
    if (input.empty()) return false;
    Op(desc).in(std::string(input).c_str(), value.tensors->variables);
    // What is computed is -1 for each axis.
    const Attr* axes = op.find("axes");
    if (item.kind == "ints" && axes != nullptr) {
      Op(desc).set(std::string(item.name).c_str(), Ints(numbers_of(axes->data).size(), -1));
    }
  }
  return true;
}

bool has_blocks(const OpItem& op) {
  return std::ranges::any_of(
      op.attrs, [](const Attr& attr) { return std::holds_alternative<BlockIndex>(attr.data); });
}

/// The operator in a program's form, without a type where there is none.
OpDesc as_program(const OpItem& op, const Constants& constants) {
  OpDesc desc;
  if (op.type == "feed" || op.type == "fetch") return desc;
  const PirForm* form = find_pir_form(op.type);
  // A program's batch_norm writes into what it reads, and older ones have no shape64: our own rows
  // write them.
  const bool other = op.type == "batch_norm" || op.type == "shape64";
  const bool known = form != nullptr && form->row->pir != "-" && !other;
  if (!known || op.inputs.empty() || has_blocks(op)) return desc;
  const auto gives_attribute = [&](const Argument& argument) {
    return form->find(argument.name) != nullptr && form->find(argument.name)->operand;
  };
  OpDesc made;
  Op::named(made, program_name(op.type));
  for (const Argument& each : op.inputs) {
    if (!gives_attribute(each)) Op(made).in(each.name.c_str(), each.variables);
  }
  for (const Argument& each : op.outputs) {
    if (!each.variables.empty()) Op(made).out(each.name.c_str(), each.variables);
  }
  return add_attributes(made, op, *form, constants) ? made : desc;
}

/// What programs say beyond PIR.
void complete(OpDesc& desc, const OpItem& op, const Block& block) {
  const std::string type = desc.type();
  if (type == "tril_triu") Op(desc).set("lower", op.type == "tril");
  if (type != "cast" && type != "set_value") return;
  const std::string input = desc.inputs(0).arguments_size() > 0 ? desc.inputs(0).arguments(0) : "";
  const auto var = std::ranges::find(block.vars, input, &VarItem::name);
  const TypeRow* row = var == block.vars.end() ? nullptr : type_row(var->dtype);
  if (row == nullptr) {
    desc.Clear();
    return;
  }
  Op(desc).set(type == "cast" ? "in_dtype" : "dtype", row->number);
  if (type == "set_value") Op(desc).set("shape", std::vector<std::int64_t>());
}

void note_constant(const OpItem& op, Constants& constants) {
  const Attr* value = op.find("value");
  const bool makes = op.inputs.empty() && op.outputs.size() == 1 && value != nullptr &&
                     op.outputs[0].variables.size() == 1;
  if (makes) constants[op.outputs[0].variables[0]] = value->data;
}

}  // namespace

ProgramDesc pir_as_program(const Model& model) {
  ProgramDesc program;
  const auto text = foreign_of(model.foreign, kPirForeign);
  if (!text) return program;
  const Program parsed = read_pir(std::as_bytes(std::span(text->data(), text->size())));
  const Block& block = parsed.blocks.front();
  BlockDesc& result = *program.add_blocks();
  result.set_idx(block.index);
  result.set_parent_idx(-1);
  for (const VarItem& var : block.vars) *result.add_vars() = declaration_of(var);
  Constants constants;
  for (const OpItem& op : block.ops) {
    // Operators keep their places: those of nodes say them.
    while (result.ops_size() <= op.index) result.add_ops();
    *result.mutable_ops(op.index) = as_program(op, constants);
    complete(*result.mutable_ops(op.index), op, block);
    note_constant(op, constants);
  }
  return program;
}

}  // namespace quench::paddle::write
