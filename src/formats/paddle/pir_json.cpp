// SPDX-License-Identifier: Apache-2.0
// The pieces of PIR's JSON: members, types, attributes.
#include "formats/paddle/pir_json.h"

#include <limits>

#include "base/format.h"
#include "formats/paddle/types.h"

namespace quench::paddle::pir {
namespace {

/// "0.a_i32" without its dialect.
std::string kind_of(const Json& coded) {
  if (!coded.is_object() || !coded.contains("#") || !coded["#"].is_string()) return "";
  const auto code = coded["#"].get<std::string>();
  return code.substr(code.find('.') + 1);
}

std::int64_t type_number(std::string_view name) {
  const TypeRow* row = type_row(name);
  return row == nullptr ? -1 : row->number;
}

Attr::Data number_of(const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number()) return value.get<double>();
  return std::monostate();
}

/// A list of what all its items are: integers, floats or texts.
Attr::Data joined(const std::vector<Attr::Data>& items) {
  std::vector<std::int64_t> whole;
  std::vector<double> any;
  std::vector<std::string> texts;
  for (const Attr::Data& item : items) {
    if (const auto* number = std::get_if<std::int64_t>(&item)) {
      whole.push_back(*number);
      any.push_back(static_cast<double>(*number));
    } else if (const auto* flag = std::get_if<bool>(&item)) {
      whole.push_back(*flag ? 1 : 0);
      any.push_back(*flag ? 1 : 0);
    } else if (const auto* real = std::get_if<double>(&item)) {
      any.push_back(*real);
    } else if (const auto* text = std::get_if<std::string>(&item)) {
      texts.push_back(*text);
    }
  }
  if (whole.size() == items.size()) return whole;
  if (any.size() == items.size()) return any;
  if (texts.size() == items.size()) return texts;
  return std::monostate();
}

Attr::Data special(const Json& coded) {
  const Json& text = coded["VD"];
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (text == "INF") return kInfinity;
  if (text == "-INF") return -kInfinity;
  return std::numeric_limits<double>::quiet_NaN();
}

Attr::Data data_of(const Json& coded) {
  if (!coded.is_object()) return std::monostate();
  if (coded.contains("VD")) return special(coded);
  if (!coded.contains("D")) return std::monostate();
  const Json& data = coded["D"];
  const std::string kind = kind_of(coded);
  if (kind == "a_dtype") return data.is_string() ? type_number(data.get<std::string>()) : -1;
  if (kind == "a_type") return type_number(kind_of(data));
  if (kind == "a_scalar") {
    return data.is_array() && data.size() == 2 ? number_of(data[1]) : number_of(data);
  }
  if (data.is_string()) return data.get<std::string>();
  if (!data.is_array()) return number_of(data);
  std::vector<Attr::Data> items;
  for (const Json& item : data) {
    // Lists inside lists are of no operator.
    const bool nested = item.is_object() && item.contains("D") && kind_of(item) == "a_array";
    items.push_back(nested ? Attr::Data() : item.is_object() ? data_of(item) : number_of(item));
  }
  return joined(items);
}

}  // namespace

const Json& member(const Json& object, const char* name) {
  if (!object.is_object() || !object.contains(name)) {
    fail(ErrorKind::BadModel, "'{}' is missing; the file is damaged or no PIR program", name);
  }
  return object[name];
}

const Json& at(const Json& list, std::size_t index) {
  if (!list.is_array() || index >= list.size()) {
    fail(ErrorKind::BadModel, "a list of operands, results or blocks is too short");
  }
  return list[index];
}

const Json& first(const Json& object, const char* name) { return at(member(object, name), 0); }

const Json& items(const Json& object, const char* name) {
  static const Json kNothing = Json::array();
  if (!object.is_object() || !object.contains(name)) return kNothing;
  if (!object[name].is_array()) fail(ErrorKind::BadModel, "'{}' is no list", name);
  return object[name];
}

std::string text(const Json& object, const char* name) {
  const Json& found = member(object, name);
  if (!found.is_string()) fail(ErrorKind::BadModel, "'{}' is no text", name);
  return found.get<std::string>();
}

std::int64_t integer(const Json& object, const char* name) {
  const Json& found = member(object, name);
  if (!found.is_number_integer()) fail(ErrorKind::BadModel, "'{}' is no integer", name);
  return found.get<std::int64_t>();
}

std::vector<Attr> attributes(const Json& op) {
  std::vector<Attr> attrs;
  for (const Json& each : items(op, "A")) {
    attrs.push_back({text(each, "N"), data_of(member(each, "AT"))});
  }
  return attrs;
}

VarItem variable(const Json& result) {
  VarItem var;
  const Json& type = member(result, "TT");
  if (kind_of(type) != "t_dtensor" || !type.contains("D") || !type["D"].is_array() ||
      type["D"].size() < 2) {
    return var;
  }
  const Json& parts = type["D"];
  const TypeRow* row = type_row(kind_of(parts[0]));
  if (row != nullptr) var.dtype = row->dtype;
  Shape shape;
  for (const Json& size : parts[1]) {
    if (!size.is_number_integer()) return var;
    shape.push_back(size.get<std::int64_t>());
  }
  var.shape = std::move(shape);
  return var;
}

const Json* list_types(const Json& result) {
  const Json& type = member(result, "TT");
  if (kind_of(type) != "t_vec" || !type.contains("D") || !type["D"].is_array()) return nullptr;
  return &type["D"];
}

}  // namespace quench::paddle::pir
