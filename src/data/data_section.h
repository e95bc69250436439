// SPDX-License-Identifier: Apache-2.0
// The section of an INI file that says which samples there are and how they are prepared.
#pragma once

#include "base/ini.h"
#include "quench/data.h"

namespace quench::data {

inline constexpr const char* kDataSection = "data_preprocess_param";

/// Data options from the section of a file that is being read; mistakes are noted there.
DataOptions read_section(IniFile& file, const IniSection& section);

}  // namespace quench::data
