// SPDX-License-Identifier: Apache-2.0
// Runs of a session one after the other, of which some go together where that costs less.
#pragma once

#include <deque>
#include <functional>

#include "quench/session.h"

namespace quench::exec {

/// Who asks for results one at a time need not know how many runs the session takes together.
class RunsAhead {
 public:
  /// `feeds(i)` is asked for each of `count` runs, in order.
  RunsAhead(Session& session, std::size_t count, std::function<TensorMap(std::size_t)> feeds,
            std::vector<std::string> wanted = {});

  /// The results of the next run.
  TensorMap next();

 private:
  Session& session_;
  std::size_t count_;
  std::function<TensorMap(std::size_t)> feeds_;
  std::vector<std::string> wanted_;
  std::size_t begun_ = 0;
  std::deque<TensorMap> done_;
};

}  // namespace quench::exec
