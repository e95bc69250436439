// SPDX-License-Identifier: Apache-2.0
// --rule: a rule of the quantisation's configuration in one word.
#pragma once

#include <string>

#include "quench/quant_config.h"

namespace quench::cli {

/// Adds "SCOPE:NAME:SETTINGS" to the configuration. SCOPE is layer, name or type; "global:SETTINGS"
/// has no name. SETTINGS are key=value pairs between commas, or `skip`. Throws Error(Usage) that
/// says what was expected.
void add_rule(const std::string& text, QuantConfig& config);

}  // namespace quench::cli
