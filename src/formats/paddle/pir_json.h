// SPDX-License-Identifier: Apache-2.0
// The pieces of PIR's JSON: every look into it is checked, for the file is hostile.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/paddle/program.h"

namespace quench::paddle {

using Json = nlohmann::json;

namespace pir {

/// A member of an object; throws Error(BadModel) that names it where there is none.
const Json& member(const Json& object, const char* name);
/// The first item of a member that is a list.
const Json& first(const Json& object, const char* name);
const Json& at(const Json& list, std::size_t index);
/// A member that is a list; an empty one where it is absent.
const Json& items(const Json& object, const char* name);
std::string text(const Json& object, const char* name);
std::int64_t integer(const Json& object, const char* name);
/// The attributes of an operator. Element types are the numbers that programs have.
std::vector<Attr> attributes(const Json& op);
/// Element type and shape of a result.
VarItem variable(const Json& result);
/// The types of a result that is a list of tensors; null: it is none.
const Json* list_types(const Json& result);

}  // namespace pir
}  // namespace quench::paddle
