// SPDX-License-Identifier: Apache-2.0
// What an interrupted analysis leaves behind, and whether it fits the next one.
#pragma once

#include <chrono>
#include <string>

#include "analyze/sensitivity.h"

namespace quench::analyze {

/// What scores depend on. Stored apart, so that a message can say what has changed.
struct ScoreOrigin {
  std::string model;
  std::string data;
  std::string settings;
  bool operator==(const ScoreOrigin&) const = default;
};

/// A file of scores. Written at most every second, whole or not at all; of several ranks, the first
/// alone reads and writes it.
class Checkpoint {
 public:
  /// `context` must outlive it.
  Checkpoint(std::string path, ScoreOrigin origin, const Context& context);
  /// The scores in the file; none when there is no file. Throws Error(BadData) when they belong to
  /// another model, other data or other settings.
  Scores load() const;
  void save(const Scores& scores, bool now = false);

 private:
  Scores read() const;

  std::string path_;
  ScoreOrigin origin_;
  const Context& context_;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace quench::analyze
