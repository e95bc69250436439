// SPDX-License-Identifier: Apache-2.0
// Opens a model once for each thread.
#include "analyze/workers.h"

#include <algorithm>
#include <atomic>

#include "base/parallel.h"

namespace quench::analyze {
namespace {

/// Every session packs the model's weights for itself: no more of them than fit into this.
constexpr std::int64_t kBytes = std::int64_t{1} << 30;

/// How many sessions of one thread; less than two are no gain.
std::int64_t sessions_for(const Model& model, const Context& context) {
  std::int64_t bytes = 1;
  for (const Value& value : model.graph.values()) {
    if (value.constant) bytes += static_cast<std::int64_t>(value.constant->num_bytes());
  }
  const std::int64_t most = std::min<std::int64_t>(context.num_threads(), kBytes / bytes);
  // A GPU is one worker; under a ceiling of memory one session reads weights once for many runs.
  return most < 2 || context.device != "cpu" || context.max_memory_mb > 0 ? 0 : most;
}

}  // namespace

Workers::Workers(const Model& model, const SessionOptions& options, const Context& context)
    : alone_(context.alone()) {
  sessions_.emplace_back(model, options, context);
  const std::int64_t count = sessions_for(model, context);
  if (count > 0) alone_.threads = 1;
  for (std::int64_t i = 0; i < count; ++i) sessions_.emplace_back(model, options, alone_);
}

void Workers::run(std::size_t count, const Work& work) {
  std::atomic<std::size_t> next = 0;
  const auto run_some = [&](Session& session) {
    for (std::size_t i = next++; i < count; i = next++) {
      alone_.check_cancelled();
      work(session, i);
    }
  };
  if (sessions_.size() == 1) return run_some(whole());
  const auto all = static_cast<std::int64_t>(sessions_.size()) - 1;
  parallel_for(all, static_cast<int>(all), [&](std::int64_t begin, std::int64_t) {
    run_some(sessions_[static_cast<std::size_t>(begin + 1)]);
  });
}

}  // namespace quench::analyze
