// SPDX-License-Identifier: Apache-2.0
// Plain parallel loops for work outside the engine.
#pragma once

#include <cstdint>
#include <functional>

namespace quench {

/// Calls `body(begin, end)` over disjoint parts of [0, count) on up to `threads` threads. The
/// first exception is rethrown here.
void parallel_for(std::int64_t count, int threads,
                  const std::function<void(std::int64_t, std::int64_t)>& body);

}  // namespace quench
