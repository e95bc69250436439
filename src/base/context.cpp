// SPDX-License-Identifier: Apache-2.0
// Convenience around the sinks of a Context.
#include "quench/context.h"

#include <thread>

#include "base/format.h"
#include "quench/ranks.h"

namespace quench {

void Context::info(std::string_view line) const {
  if (log) log(LogLevel::Info, line);
}

void Context::warn(std::string_view line) const {
  if (log) log(LogLevel::Warning, line);
}

void Context::report(std::string_view phase, std::int64_t done, std::int64_t total) const {
  if (progress) progress({.phase = phase, .done = done, .total = total});
}

void Context::check_cancelled() const {
  if (cancel != nullptr && cancel->load(std::memory_order_relaxed)) {
    fail(ErrorKind::Cancelled, "stopped on request");
  }
  if (ranks) ranks->check();
}

bool Context::writes() const { return !ranks || ranks->rank() == 0 || ranks->tensor_parallel(); }

Context Context::alone() const {
  Context copy = *this;
  // A part of a model does nothing alone.
  if (ranks && !ranks->tensor_parallel()) copy.ranks.reset();
  return copy;
}

int Context::num_threads() const {
  if (threads > 0) return threads;
  const unsigned cores = std::thread::hardware_concurrency();
  return cores == 0 ? 1 : static_cast<int>(cores);
}

}  // namespace quench
