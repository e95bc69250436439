// SPDX-License-Identifier: Apache-2.0
// The names of temporary files, by which those of killed runs are known.
#pragma once

#include <string>

namespace quench {

/// Whether `name` is that of a temporary file of `path`.
bool is_temporary_of(const std::string& path, const std::string& name);

}  // namespace quench
