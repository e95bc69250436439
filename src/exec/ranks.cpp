// SPDX-License-Identifier: Apache-2.0
// The door to the engine's way between processes.
#include "quench/ranks.h"

#include "base/format.h"
#include "base/module.h"
#include "exec/session_impl.h"

namespace quench {

std::shared_ptr<Ranks> join_ranks(const RankOptions& options, const Context& context) {
  if (options.size < 1 || options.rank < 0 || options.rank >= options.size) {
    fail(ErrorKind::Usage, "there is no rank {} of {}", options.rank, options.size);
  }
  if (options.port < 1 || options.port > 65535) {
    fail(ErrorKind::Usage, "{} is no port; expected 1 to 65535", options.port);
  }
  if (!(options.timeout_seconds > 0)) {
    fail(ErrorKind::Usage, "ranks need more than {} s to find each other", options.timeout_seconds);
  }
  if (options.elastic && options.tensor_parallel) {
    fail(ErrorKind::Usage,
         "a rank that has a part of the model cannot be spared; leave out --elastic, or "
         "--tensor-parallel");
  }
  const auto join =
      reinterpret_cast<exec::JoinFunction>(module_symbol("engine", "quench_engine_join", context));
  return std::shared_ptr<Ranks>(join(options, context));
}

}  // namespace quench
