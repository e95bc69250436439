// SPDX-License-Identifier: Apache-2.0
// Work in pieces of unlike size: whoever is free takes the next.
#include "formats/packed/tasks.h"

#include <atomic>

#include "base/parallel.h"
#include "quench/context.h"

namespace quench::packed {
namespace {

/// Below this a thread costs more than it saves.
constexpr std::uint64_t kWorthThreads = std::uint64_t{1} << 18;

}  // namespace

void run_tasks(std::size_t count, std::uint64_t bytes,
               const std::function<void(std::size_t)>& task) {
  const int threads = bytes < kWorthThreads ? 1 : Context{}.num_threads();
  std::atomic<std::size_t> next{0};
  parallel_for(threads, threads, [&](std::int64_t /*begin*/, std::int64_t /*end*/) {
    for (std::size_t i = next++; i < count; i = next++) task(i);
  });
}

}  // namespace quench::packed
