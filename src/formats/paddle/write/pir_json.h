// SPDX-License-Identifier: Apache-2.0
// The pieces of PIR's JSON as they are written.
#pragma once

#include <string>
#include <string_view>

#include "formats/paddle/pir_json.h"

namespace quench::paddle::write {

/// The type of a tensor.
Json pir_type(DType dtype, const Shape& shape);
/// An attribute of a kind: b, i32, i64, f32, f64, s, lists of these (i32s), type, shape, place.
Json pir_attribute(std::string_view name, std::string_view kind, const Attr::Data& data);
/// The attribute that says yes of each of some results.
Json pir_flags(const char* name, std::size_t count);
/// What a text stands for where an attribute of a kind is wanted.
Attr::Data pir_value(std::string_view kind, std::string_view text);
/// The numbers of an attribute, one or several.
std::vector<double> numbers_of(const Attr::Data& data);

}  // namespace quench::paddle::write
