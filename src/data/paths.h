// SPDX-License-Identifier: Apache-2.0
// Which path feeds which input.
#pragma once

#include <string>
#include <vector>

#include "data/column.h"

namespace quench::data {

/// The path of an input.
struct InputPath {
  const InputSpec* spec = nullptr;
  std::string path;
};

/// Splits "path" or "input:path,input2:path2" and matches the names with the inputs, in the inputs'
/// order. The last ':' of an item splits it; a path in single quotes may hold ':' and ','.
std::vector<InputPath> split_paths(const std::string& text, const std::vector<InputSpec>& specs);

/// The files and folders in such a text, whatever inputs they are for; archives without members.
std::vector<std::string> files_of(const std::string& text);

}  // namespace quench::data
