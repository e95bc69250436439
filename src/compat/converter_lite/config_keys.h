// SPDX-License-Identifier: Apache-2.0
// The sections and keys that converter_lite's INI files may have.
#pragma once

#include "base/ini.h"

namespace quench::compat {

inline constexpr const char* kDataSection = "data_preprocess_param";

/// Complains of a section or key that is not known, with the nearest name.
void check_section(IniFile& file, const IniSection& section);

}  // namespace quench::compat
