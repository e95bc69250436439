// SPDX-License-Identifier: Apache-2.0
// The PIR program that a model was read from: operators that nobody touched are written as they
// stood.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "formats/paddle/framework.pb.h"
#include "formats/paddle/pir_json.h"
#include "formats/paddle/program.h"
#include "quench/model.h"

namespace quench::paddle::write {

/// The attribute of `PirOriginal::program`'s operators that holds their place in PIR.
inline constexpr const char* kPirPlace = "quench.pir";

struct PirOriginal {
  Json root;
  /// The outermost block with programs' names for operators, inputs and outputs; an operator that
  /// became no node has no type.
  ProgramDesc program;
  PirNames names;                              ///< of values, by their numbers
  std::map<std::int64_t, std::size_t> makers;  ///< operators, by the numbers of their results

  const Json& ops() const { return root["program"]["regions"][0]["blocks"][0]["ops"]; }
};

/// A value as programs declare it.
VarDesc declaration_of(const VarItem& item);
/// Nothing for a model that is from elsewhere.
std::optional<PirOriginal> pir_original(const Model& model);
/// Its outermost block as an older program has it: operators in their places, with attributes; one
/// that programs have no form for, or another one, has no type. Empty for a model from elsewhere.
ProgramDesc pir_as_program(const Model& model);

}  // namespace quench::paddle::write
