// SPDX-License-Identifier: Apache-2.0
// What a caller hands to long work: where to log, whom to tell of progress, when to stop.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace quench {

class Ranks;

/// How much a log line matters.
enum class LogLevel { Debug, Info, Warning };

/// How far a piece of long work has come; total is 0 when it is not known.
struct Progress {
  std::string_view phase;
  std::int64_t done = 0;
  std::int64_t total = 0;
};

/// Settings that every long call takes. The library itself never prints or reads the environment.
struct Context {
  std::function<void(LogLevel, std::string_view)> log;
  std::function<void(const Progress&)> progress;
  /// Set from another thread or a signal handler to stop with an error at the next safe point.
  const std::atomic<bool>* cancel = nullptr;
  /// Threads for the engine and the readers; 0 means one for each core.
  int threads = 0;
  /// Millions of bytes of memory that the process is to stay under: weights stream from their file,
  /// batches shrink, results wait on disk. 0: no ceiling.
  int max_memory_mb = 0;
  std::uint64_t seed = 0;
  /// Folder of the loadable modules; empty means beside libquench.
  std::string module_dir;
  /// Where models run: "cpu", "cuda" or "cuda:1".
  std::string device = "cpu";
  /// What a GPU multiplies in: "float", "tf32" or "half".
  std::string precision = "float";
  /// The processes that share the work (quench/ranks.h); null: this one does it alone.
  std::shared_ptr<Ranks> ranks = nullptr;

  void info(std::string_view line) const;
  void warn(std::string_view line) const;
  void report(std::string_view phase, std::int64_t done, std::int64_t total) const;
  /// Throws if the caller has asked to stop, or another rank has failed.
  void check_cancelled() const;
  /// `threads`, or the number of cores when that is 0.
  int num_threads() const;
  /// Whether files are this process's to write: of several ranks, the first alone writes.
  bool writes() const;
  /// The same settings for work that is this process's alone.
  Context alone() const;
};

}  // namespace quench
