// SPDX-License-Identifier: Apache-2.0
// Parts of Quench that are loaded on first use, so that plain commands start fast.
#pragma once

#include <string>

#include "quench/context.h"

namespace quench {

/// The address of `symbol` in module `name` ("engine", "images"), loading it if need be.
/// Modules stay loaded. Throws Error(Unsupported) that says where it was looked for.
void* module_symbol(const std::string& name, const std::string& symbol, const Context& context);

}  // namespace quench
