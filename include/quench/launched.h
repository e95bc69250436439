// SPDX-License-Identifier: Apache-2.0
// A process's place among others, as torchrun, MPI, Slurm or quench launch say.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "quench/ranks.h"

namespace quench {

/// What the launcher's environment says of this process.
struct LaunchedRank {
  RankOptions ranks;
  int local_rank = 0;  ///< among those of this machine
  int local_size = 1;
};

/// The variable of a name, such as `std::getenv` gives it.
using Variables = std::function<std::optional<std::string>(const char* name)>;

/// Throws Error(Usage) that says which variable is missing or wrong.
LaunchedRank launched_rank(const Variables& look_up);

/// Gives a context this process's part of its machine's cores, unless it names a number of threads,
/// and a GPU of its own.
void take_place(const LaunchedRank& place, Context& context);

}  // namespace quench
