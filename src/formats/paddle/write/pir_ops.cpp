// SPDX-License-Identifier: Apache-2.0
// PIR's operators while they are written.
#include "formats/paddle/write/pir_ops.h"

#include <algorithm>

#include "base/format.h"
#include "formats/paddle/types.h"
#include "formats/paddle/write/pir_normal.h"

namespace quench::paddle::write {
namespace {

using Names = std::vector<std::string>;

const Names* find(const std::vector<Argument>& arguments, std::string_view name) {
  const auto found = std::ranges::find(arguments, name, &Argument::name);
  return found == arguments.end() || found->variables.empty() ? nullptr : &found->variables;
}

Attr::Data value_of(const OpItem& op, const PirForm& form, const PirItem& item) {
  if (const Attr* given = op.find(item.name)) return given->data;
  const auto note = find_attribute(*form.row, item.name);
  const auto otherwise = item.otherwise ? item.otherwise : note ? note->otherwise : std::nullopt;
  if (!otherwise && item.kind != "place") {
    fail(ErrorKind::Unsupported, "'{}' lacks the attribute '{}', which PIR needs", op.type,
         item.name);
  }
  return pir_value(item.kind == "ints" ? "i64s" : item.kind, otherwise.value_or(""));
}

/// The tokens of a row's inputs that PIR has.
std::vector<std::string_view> operands_of(const OpRow& row) {
  return parts_of(row.inputs.substr(0, row.inputs.find('/')), ' ');
}

bool has_operand(const OpRow& row, std::string_view argument) {
  return std::ranges::any_of(operands_of(row), [&](std::string_view token) {
    const std::size_t colon = token.find(':');
    if (token.substr(0, colon) == argument) return true;
    if (colon == std::string_view::npos) return false;
    const auto tensors = parts_of(token.substr(colon + 1), ',');
    return std::ranges::find(tensors, argument) != tensors.end();
  });
}

/// What PIR cannot say must be as PIR has it.
void check(const OpItem& op, const PirForm& form) {
  for (const Argument& each : op.inputs) {
    if (!each.variables.empty() && !has_operand(*form.row, each.name)) {
      fail(ErrorKind::Unsupported, "PIR has no operand '{}' of '{}'; write a .pdmodel", each.name,
           op.type);
    }
  }
  for (const Attr& attr : op.attrs) {
    const auto note = find_attribute(*form.row, attr.name);
    if (!note || form.find(attr.name) != nullptr || !note->otherwise) continue;
    const auto* text = std::get_if<std::string>(&attr.data);
    const char* kind = std::holds_alternative<bool>(attr.data) ? "b" : "f64s";
    const bool same = text != nullptr
                          ? *text == *note->otherwise
                          : numbers_of(attr.data) == numbers_of(pir_value(kind, *note->otherwise));
    if (!same) {
      fail(ErrorKind::Unsupported, "PIR has no attribute '{}' of '{}'; write a .pdmodel", attr.name,
           op.type);
    }
  }
}

Json list_type(const Json& types) { return {{"#", "0.t_vec"}, {"D", types}}; }

bool is_list(const Json& type) { return type.is_object() && type.value("#", "") == "0.t_vec"; }

}  // namespace

PirOps::PirOps(const std::map<std::string, Tensor>& parameters, bool trainable)
    : parameters_(parameters), trainable_(trainable) {
  for (const auto& [name, tensor] : parameters) write_parameter(name, tensor);
}

void PirOps::write_parameter(const std::string& name, const Tensor& tensor) {
  Json op = {{"#", "p"}, {"A", Json::array({0, 1, 0, name})}};
  op["O"] = {{"%", next_}, {"TT", pir_type(tensor.dtype(), tensor.shape())}};
  op["DA"] = op["QA"] = Json::array();
  if (trainable_) op["OA"] = Json::array({1, 1, 0});
  numbers_[name] = next_++;
  ops_.push_back(std::move(op));
}

std::int64_t PirOps::number(const std::string& variable) const {
  const auto found = numbers_.find(variable);
  if (found == numbers_.end()) fail(ErrorKind::Internal, "nothing makes '{}'", variable);
  return found->second;
}

Json PirOps::type_of(const std::string& variable) const {
  if (const auto tensor = parameters_.find(variable); tensor != parameters_.end()) {
    return pir_type(tensor->second.dtype(), tensor->second.shape());
  }
  const auto var = vars_.find(variable);
  if (var == vars_.end()) return pir_type(DType::Float32, {});
  return pir_type(var->second.dtype, var->second.shape.value_or(Shape()));
}

std::int64_t PirOps::add(Json op, const std::vector<Names>& made) {
  std::int64_t first = 0;
  std::vector<std::pair<std::int64_t, std::size_t>> lists;
  Json& results = op["O"];
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::int64_t id = next_++;
    if (i == 0) first = id;
    results[i]["%"] = id;
    if (i >= made.size()) continue;
    if (is_list(results[i]["TT"])) {
      lists.emplace_back(id, i);
    } else if (made[i].size() == 1 && !parameters_.contains(made[i][0])) {
      numbers_[made[i][0]] = id;
    }
  }
  const Json types = results;
  ops_.push_back(std::move(op));
  for (const auto& [id, i] : lists) {
    std::vector<Names> parts;
    for (const std::string& name : made[i]) parts.push_back({name});
    add("0.split", {id}, Json::array(), types[i]["TT"]["D"], parts);
  }
  return first;
}

std::int64_t PirOps::add(std::string_view name, const std::vector<std::int64_t>& operands,
                         Json attributes, const Json& types, const std::vector<Names>& made) {
  Json op = {{"#", std::string(name)}, {"A", std::move(attributes)}};
  op["I"] = op["O"] = Json::array();
  for (const std::int64_t id : operands) op["I"].push_back({{"%", id}});
  for (const Json& type : types) op["O"].push_back({{"TT", type}});
  if (trainable_) op["OA"] = Json::array({pir_flags("stop_gradient", types.size())});
  return add(std::move(op), made);
}

std::int64_t PirOps::combined(const Names& variables) {
  std::vector<std::int64_t> parts;
  Json types = Json::array();
  for (const std::string& name : variables) {
    parts.push_back(number(name));
    types.push_back(type_of(name));
  }
  return add("0.combine", parts, Json::array(), Json::array({list_type(types)}), {});
}

std::int64_t PirOps::constant(const PirItem& item, const Attr::Data& data) {
  const bool list = item.kind == "ints";
  const Attr::Data dtype = std::int64_t{type_row(list || item.kind == "i64" ? DType::Int64
                                                 : item.kind == "i32"       ? DType::Int32
                                                                            : DType::Float32)
                                            ->number};
  Json attributes = Json::array();
  if (list) {
    attributes.push_back(pir_attribute("value", "i64s", data));
  } else {
    attributes.push_back(pir_attribute("shape", "shape", std::vector<std::int64_t>{1}));
    attributes.push_back(pir_attribute("value", "f64", data));
  }
  attributes.push_back(pir_attribute("dtype", "type", dtype));
  attributes.push_back(pir_attribute("place", "place", {}));
  attributes.back()["AT"]["D"][0] = 1;  // it is read on the host
  const auto size = list ? static_cast<std::int64_t>(numbers_of(data).size()) : 1;
  const DType made = dtype_of(static_cast<std::int32_t>(std::get<std::int64_t>(dtype)));
  return add(list ? "1.full_int_array" : "1.full", {}, std::move(attributes),
             Json::array({pir_type(made, {size})}), {});
}

/// The number of an operand: a variable, several, or an attribute's constant.
std::int64_t PirOps::given(const OpItem& op, const PirForm& form, std::string_view token) {
  const std::size_t colon = token.find(':');
  const std::string_view name = token.substr(0, colon);
  const Names* variables = find(op.inputs, name);
  if (colon != std::string_view::npos) {
    for (const std::string_view tensor : parts_of(token.substr(colon + 1), ',')) {
      if (variables == nullptr) variables = find(op.inputs, tensor);
    }
  }
  if (variables != nullptr) {
    const bool list = form.lists.contains(name) || variables->size() > 1;
    return list ? combined(*variables) : number(variables->front());
  }
  const PirItem* item = form.find(name);
  return item == nullptr ? 0 : constant(*item, value_of(op, form, *item));
}

bool PirOps::knows(const OpItem& op) const {
  return op.type == "feed" || op.type == "fetch" || find_pir_form(normal(op).type) != nullptr;
}

void PirOps::write(const OpItem& op) {
  if (op.type == "feed" || op.type == "fetch") return write_port(op);
  const OpItem now = normal(op);
  const PirForm& form = *find_pir_form(now.type);
  check(now, form);
  write_form(now, form);
}

void PirOps::write_port(const OpItem& op) {
  const bool feeds = op.type == "feed";
  const std::string& name = (feeds ? op.outputs : op.inputs).at(0).variables.at(0);
  Json attributes = Json::array({pir_attribute("name", "s", name)});
  const Json type = type_of(name);
  if (!feeds) {
    attributes.push_back(pir_attribute("col", "i32", op.find("col")->data));
    add("1.fetch", {number(name)}, std::move(attributes), Json::array({type}), {});
    if (trainable_) ops_.back()["OA"].push_back(pir_flags("persistable", 1));
    return;
  }
  const VarItem& var = vars_.at(name);
  const TypeRow* row = type_row(var.dtype);
  attributes.push_back(pir_attribute("shape", "shape", var.shape.value_or(Shape())));
  attributes.push_back(pir_attribute("dtype", "type", std::int64_t{row->number}));
  attributes.push_back(pir_attribute("place", "place", {}));
  add("1.data", {}, std::move(attributes), Json::array({type}), {{name}});
}

void PirOps::write_form(const OpItem& op, const PirForm& form) {
  std::vector<std::int64_t> operands;
  for (const std::string_view token : operands_of(*form.row)) {
    operands.push_back(given(op, form, token));
  }
  Json types = Json::array();
  std::vector<Names> made;
  for (const std::string_view output : form.outputs) {
    const Names* variables = find(op.outputs, output);
    made.push_back(variables == nullptr ? Names() : *variables);
    if (form.lists.contains(output)) {
      Json parts = Json::array();
      for (const std::string& name : made.back()) parts.push_back(type_of(name));
      types.push_back(list_type(parts));
    } else {
      types.push_back(type_of(made.back().empty() ? "" : made.back()[0]));
    }
  }
  Json attributes = Json::array();
  for (const PirItem& item : form.items) {
    if (item.operand) continue;
    const auto note = find_attribute(*form.row, item.name);
    const bool other = note && !note->other_name.empty();
    Attr::Data data;
    if (item.kind == "made") {
      const auto var = vars_.find(made[0].at(0));
      data =
          std::int64_t{type_row(var == vars_.end() ? DType::Float32 : var->second.dtype)->number};
    } else {
      data = value_of(op, form, item);
    }
    attributes.push_back(pir_attribute(other ? note->other_name : item.name,
                                       item.kind == "made" ? "type" : item.kind, data));
  }
  add(format("1.{}", form.name), operands, std::move(attributes), types, made);
}

}  // namespace quench::paddle::write
