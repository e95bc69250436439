// SPDX-License-Identifier: Apache-2.0
// Runs a list of passes by name.
#pragma once

#include "passes/pass.h"

namespace quench::passes {

/// Checks the model with `verify` after each pass or not.
enum class Checks { None, Verify };

/// Runs the named passes in the order given, of the list and of `more`; an unknown name is an
/// Error(Usage).
PassReport run(Model& model, std::span<const std::string_view> names, const PassOptions& options,
               Checks checks = Checks::None, std::span<const PassInfo> more = {});

}  // namespace quench::passes
