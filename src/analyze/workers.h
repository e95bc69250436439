// SPDX-License-Identifier: Apache-2.0
// Many runs of one model: threads take runs, not parts of an operator, and none waits for another.
#pragma once

#include <functional>
#include <vector>

#include "quench/session.h"

namespace quench::analyze {

/// Sessions of one thread each, as many as there are threads and as memory has room for, and one
/// with all threads.
class Workers {
 public:
  Workers(const Model& model, const SessionOptions& options, const Context& context);

  /// The one with all threads: for what is run once.
  Session& whole() noexcept { return sessions_.front(); }
  /// Of the others, and of sessions that belong to their runs.
  const Context& context() const noexcept { return alone_; }
  /// Calls work(session, i) for all i below `count`, from several threads at once.
  using Work = std::function<void(Session& session, std::size_t i)>;
  void run(std::size_t count, const Work& work);

 private:
  Context alone_;
  std::vector<Session> sessions_;  ///< the first with all threads, which runs all if it is alone
};

}  // namespace quench::analyze
