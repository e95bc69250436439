// SPDX-License-Identifier: Apache-2.0
// Fills up when it is empty.
#include "exec/runs_ahead.h"

#include <algorithm>

namespace quench::exec {

RunsAhead::RunsAhead(Session& session, std::size_t count,
                     std::function<TensorMap(std::size_t)> feeds, std::vector<std::string> wanted)
    : session_(session), count_(count), feeds_(std::move(feeds)), wanted_(std::move(wanted)) {}

TensorMap RunsAhead::next() {
  if (done_.empty()) {
    std::vector<TensorMap> feeds;
    const std::size_t together = std::min(session_.runs_together(), count_ - begun_);
    for (std::size_t i = 0; i < together; ++i) feeds.push_back(feeds_(begun_ + i));
    begun_ += together;
    for (TensorMap& each : session_.run_all(feeds, wanted_)) done_.push_back(std::move(each));
  }
  TensorMap result = std::move(done_.front());
  done_.pop_front();
  return result;
}

}  // namespace quench::exec
