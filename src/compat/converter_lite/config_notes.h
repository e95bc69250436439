// SPDX-License-Identifier: Apache-2.0
// What a configuration file says without effect here, and what it asks for that is not done.
#pragma once

#include "base/ini.h"
#include "quench/option_table.h"

namespace quench::compat {

/// A key that changes nothing, or nothing under a condition.
struct IdleKey {
  const char* section;
  const char* key;
  bool (*when)(const QuantizeOptions& options, const std::string& value);
  const char* why;
  /// What its value must be where no option reads the key.
  OptionKind kind = OptionKind::Other;
};
const std::vector<IdleKey>& idle_keys();

/// Adds a note with file and line for every section and key that changes nothing, given the options
/// that were read from the file; complains of what would change the model and is not done.
void note_what_has_no_effect(IniFile& file, QuantizeOptions& options);

}  // namespace quench::compat
