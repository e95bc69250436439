// SPDX-License-Identifier: Apache-2.0
// converter_lite's words for options and their values.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "quench/option_table.h"

namespace quench::compat {

/// Where an option stands in an INI file.
struct IniPlace {
  std::string section;
  std::vector<std::string> keys;  ///< two for a size: its width and its height
  std::string value;              ///< "section.key=value": what it says there; else empty
};
/// Nothing in it where converter_lite has no key for the option.
IniPlace ini_place(const Option& option);

/// Their words for the values of a key, and ours; empty where both are the same.
using ValueWords = std::vector<std::pair<std::string, std::string>>;
const ValueWords& value_words(std::string_view ini);

}  // namespace quench::compat
