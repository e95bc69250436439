// SPDX-License-Identifier: Apache-2.0
// Small values in flags: NAME=VALUE pairs, shapes, lists.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quench/tensor.h"

namespace quench::cli {

/// Each function throws Error(Usage) that names `flag`, what it got and what it takes.
std::pair<std::string, std::string> parse_pair(const std::string& flag, const std::string& text);
double parse_number(const std::string& flag, const std::string& text);
/// NAME=D0,D1,... items as shapes by name.
std::map<std::string, Shape> parse_shapes(const std::string& flag,
                                          const std::vector<std::string>& items);
/// "a,b,c" and repeated flags as one list.
std::vector<std::string> split_list(const std::vector<std::string>& items);

}  // namespace quench::cli
