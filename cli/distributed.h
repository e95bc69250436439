// SPDX-License-Identifier: Apache-2.0
// --distributed: this process as one of several, as torchrun, MPI, Slurm or quench launch say.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "quench/launched.h"

namespace quench::cli {

/// Throws Error(Usage) that says which variable is missing or wrong.
LaunchedRank launched_by_environment();

/// The words of a command line with --tensor-parallel, in which {rank} is this process's number.
std::vector<std::string> with_rank(std::vector<std::string> words);

/// Adds --tensor-parallel, to a verb that has --distributed.
CLI::Option* add_tensor_parallel_flag(CLI::App& app);
/// Whether it was given.
bool tensor_parallel();

/// Joins the other processes; only rank 0 prints from here on. They are those of `process_ranks`.
std::shared_ptr<Ranks> join_process(const RankOptions& options, const Context& context, bool quiet);
/// Null in a process that works alone.
Ranks* process_ranks() noexcept;
/// At the end of a verb that did its work. Warns of ranks that never came, unless quiet.
void leave_ranks();

}  // namespace quench::cli
