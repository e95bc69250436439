// SPDX-License-Identifier: Apache-2.0
// Values that stay inside the engine between runs.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace quench {

/// A value as it lies in the engine, in the engine's own order: what one run made another run may
/// read, also of another session, without the copies into a Tensor and back.
class EngineValue {
 public:
  EngineValue() = default;
  explicit EngineValue(std::shared_ptr<const void> body) : body_(std::move(body)) {}
  /// The engine's own.
  const std::shared_ptr<const void>& body() const noexcept { return body_; }

 private:
  std::shared_ptr<const void> body_;
};
using EngineValues = std::map<std::string, EngineValue>;

/// What one of several runs starts from, and computes; `wanted` as for `Session::run`.
struct RunRequest {
  EngineValues feeds;
  std::vector<std::string> wanted = {};
};

}  // namespace quench
