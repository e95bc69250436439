// SPDX-License-Identifier: Apache-2.0
// What to do after each job: one table of next commands.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "cli/common.h"

namespace quench::cli {

/// Says the next command after `job`, on a terminal and unless --quiet or --json is given: the
/// first of its rows all of whose words are there. `words` are what the row's {names} stand for;
/// those that are empty are not there.
void suggest_after(std::string_view job, const CommonFlags& flags,
                   const std::map<std::string, std::string>& words);

}  // namespace quench::cli
