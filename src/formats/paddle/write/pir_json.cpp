// SPDX-License-Identifier: Apache-2.0
// The pieces of PIR's JSON as they are written.
#include "formats/paddle/write/pir_json.h"

#include <cmath>
#include <cstdlib>

#include "base/format.h"
#include "formats/paddle/rows.h"
#include "formats/paddle/types.h"

namespace quench::paddle::write {
namespace {

Json coded(std::string_view code, Json data) {
  return {{"#", std::string(code)}, {"D", std::move(data)}};
}

Json number(std::string_view kind, double value) {
  const std::string code = format("0.a_{}", kind);
  if (std::isfinite(value)) {
    if (kind[0] == 'i') return coded(code, static_cast<std::int64_t>(value));
    return coded(code, kind == "f32" ? double{static_cast<float>(value)} : value);
  }
  const char* text = std::isnan(value) ? "NaN" : value > 0 ? "INF" : "-INF";
  return {{"#", code}, {"VD", text}};
}

/// Exact, where a double is not.
std::vector<std::int64_t> integers_of(const Attr::Data& data) {
  if (const auto* one = std::get_if<std::int64_t>(&data)) return {*one};
  if (const auto* all = std::get_if<std::vector<std::int64_t>>(&data)) return *all;
  std::vector<std::int64_t> whole;
  for (const double value : numbers_of(data)) whole.push_back(static_cast<std::int64_t>(value));
  return whole;
}

Json list(std::string_view kind, const Attr::Data& data) {
  Json items = Json::array();
  if (kind[0] == 'i') {
    for (const std::int64_t each : integers_of(data)) {
      items.push_back(coded(format("0.a_{}", kind), each));
    }
  } else {
    for (const double each : numbers_of(data)) items.push_back(number(kind, each));
  }
  return coded("0.a_array", std::move(items));
}

Json value(std::string_view kind, const Attr::Data& data) {
  if (kind == "place") return coded("1.a_place", Json::array({0, 0, ""}));
  if (kind == "shape") return coded("1.a_intarray", integers_of(data));
  if (kind == "s") {
    const auto* text = std::get_if<std::string>(&data);
    return coded("0.a_str", text == nullptr ? "" : *text);
  }
  if (kind.ends_with('s')) return list(kind.substr(0, kind.size() - 1), data);
  const std::vector<std::int64_t> whole = integers_of(data);
  if (kind == "i32" || kind == "i64") {
    return coded(format("0.a_{}", kind), whole.empty() ? 0 : whole[0]);
  }
  const std::vector<double> any = numbers_of(data);
  const double first = any.empty() ? 0 : any[0];
  if (kind == "b") return coded("0.a_bool", first != 0);
  if (kind == "type") {
    const TypeRow* row = type_row(static_cast<std::int32_t>(first));
    return coded("1.a_dtype", row == nullptr ? "Undefined(ALL_DTYPE)" : std::string(row->name));
  }
  return number(kind, first);
}

}  // namespace

std::vector<double> numbers_of(const Attr::Data& data) {
  if (const auto* flag = std::get_if<bool>(&data)) return {*flag ? 1.0 : 0.0};
  if (const auto* one = std::get_if<double>(&data)) return {*one};
  if (const auto* one = std::get_if<std::int64_t>(&data)) return {static_cast<double>(*one)};
  if (const auto* all = std::get_if<std::vector<double>>(&data)) return *all;
  if (const auto* all = std::get_if<std::vector<std::int64_t>>(&data)) {
    return {all->begin(), all->end()};
  }
  return {};
}

Attr::Data pir_value(std::string_view kind, std::string_view text) {
  if (kind == "s") return std::string(text);
  if (kind == "b") return text == "true";
  std::vector<double> values;
  for (const std::string_view part : parts_of(text, ',')) {
    values.push_back(std::strtod(std::string(part).c_str(), nullptr));
  }
  return values;
}

Json pir_attribute(std::string_view name, std::string_view kind, const Attr::Data& data) {
  return {{"N", std::string(name)}, {"AT", value(kind, data)}};
}

Json pir_flags(const char* name, std::size_t count) {
  return {{"N", name}, {"AT", coded("0.a_array", Json(count, coded("0.a_bool", true)))}};
}

Json pir_type(DType dtype, const Shape& shape) {
  const TypeRow* row = type_row(dtype);
  const std::string_view name = (row == nullptr ? type_row(DType::Float32) : row)->pir_type;
  return coded("0.t_dtensor", Json::array({Json{{"#", format("0.{}", name)}}, Json(shape), "NCHW",
                                           Json::array(), 0}));
}

}  // namespace quench::paddle::write
