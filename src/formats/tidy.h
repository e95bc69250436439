// SPDX-License-Identifier: Apache-2.0
// What several readers and writers of other tools' files share.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "quench/graph.h"

namespace quench::formats {

/// Constants that a node gives become values that are constant.
void lift_constants(Graph& graph);
/// Names for a message: "Conv2D", or "Conv2D (3 times)".
std::vector<std::string> counted(const std::map<std::string, int>& names);
/// The files of a folder that end so; none where it cannot be read.
std::vector<std::string> files_in(const std::string& folder, std::string_view extension);

}  // namespace quench::formats
