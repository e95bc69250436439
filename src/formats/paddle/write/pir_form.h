// SPDX-License-Identifier: Apache-2.0
// How PIR has an operator of programs.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "formats/paddle/rows.h"

namespace quench::paddle::write {

/// An attribute, or an operand that stands for one.
struct PirItem {
  std::string_view name;  ///< in programs
  std::string_view kind;
  bool operand = false;
  std::optional<std::string_view> otherwise;
};

struct PirForm {
  const OpRow* row = nullptr;
  std::string_view name;
  std::vector<std::string_view> outputs;
  std::set<std::string_view> lists;  ///< inputs and outputs that are lists of tensors
  std::vector<PirItem> items;

  const PirItem* find(std::string_view item) const;
};

/// Null: PIR has no such operator, or its form is not known.
const PirForm* find_pir_form(std::string_view op_type);

}  // namespace quench::paddle::write
