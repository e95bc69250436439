// SPDX-License-Identifier: Apache-2.0
// Threads for loops outside the engine.
#include "base/parallel.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace quench {

void parallel_for(std::int64_t count, int threads,
                  const std::function<void(std::int64_t, std::int64_t)>& body) {
  const std::int64_t parts = std::min<std::int64_t>(count, std::max(1, threads));
  if (parts <= 1) {
    if (count > 0) body(0, count);
    return;
  }
  std::exception_ptr first;
  std::mutex mutex;
  const auto guarded = [&](std::int64_t part) {
    try {
      body(count * part / parts, count * (part + 1) / parts);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!first) first = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> workers;
    for (std::int64_t part = 1; part < parts; ++part) workers.emplace_back(guarded, part);
    guarded(0);
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace quench
