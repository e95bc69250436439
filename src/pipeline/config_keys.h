// SPDX-License-Identifier: Apache-2.0
// The sections and keys that converter_lite's INI files may have.
#pragma once

#include "base/ini.h"

namespace quench {

/// Throws Error(BadConfig) with file and line, and the nearest name, unless the section and each of
/// its keys are known. [data_preprocess_param] is left to the data room.
void check_section(const IniFile& file, const IniSection& section);

}  // namespace quench
