// SPDX-License-Identifier: Apache-2.0
// The sections and keys that converter_lite's INI files may have.
#pragma once

#include "base/ini.h"

namespace quench::compat {

/// Complains of a section or key that is not known, with the nearest name. [data_preprocess_param]
/// is left to the data room.
void check_section(IniFile& file, const IniSection& section);

}  // namespace quench::compat
