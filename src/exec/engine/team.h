// SPDX-License-Identifier: Apache-2.0
// Threads that stay together over several steps. Every parallel region of OpenMP costs 0.65 us;
// threads that wait for each other inside one share a piece of work at 0.12 us.
#pragma once

#include <c10/util/FunctionRef.h>

#include <cstdint>

namespace quench::exec {

/// Cuts [begin, end) into at most one part a thread, of at least `grain` elements (a quarter of
/// that inside a team), and has them done at the same time.
void share(std::int64_t begin, std::int64_t end, std::int64_t grain,
           c10::function_ref<void(std::int64_t, std::int64_t)> work);
/// How many threads `share` has here.
std::int64_t sharing_threads();
/// Whether `share` costs little here.
bool in_team();
/// How often this thread had work that a team would have shared.
std::int64_t times_shared();

/// Runs `work` on this thread while the others wait for shares of it. Inside, whatever does not use
/// `share` runs on one thread.
void run_as_team(c10::function_ref<void()> work);

}  // namespace quench::exec
