// SPDX-License-Identifier: Apache-2.0
// A progress bar on stderr when that is a terminal, log lines, and Ctrl-C.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "quench/context.h"

namespace quench::cli {

/// "[#####-----] evaluate 500/1000, 123.4/s, 0:04 left", cut to `width` columns. `share` is how far
/// the whole job has come, which the bar shows; the numbers are those of its phase.
std::string bar_line(const Progress& progress, double share, double seconds, int width);

/// How far a job has come, of whose phases nobody knows how many there will be: each fills half of
/// what is left, so that the bar never goes backwards and never claims to be done before it is.
class JobShare {
 public:
  double update(const Progress& progress);

 private:
  std::string phase_;
  double begun_ = 0;  ///< when the phase began
  double share_ = 0;
};

/// Draws one line and keeps it at the bottom; nothing at all unless stderr is a terminal.
class ProgressBar {
 public:
  ProgressBar();
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void update(const Progress& progress);
  /// Prints a line above the bar.
  void log(LogLevel level, std::string_view line);
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  void erase();

  std::mutex mutex_;
  bool terminal_ = false;
  bool drawn_ = false;
  std::string phase_;
  JobShare share_;
  std::int64_t first_done_ = 0;
  Clock::time_point start_;
  Clock::time_point last_draw_;
};

/// Makes Ctrl-C and SIGTERM set the flag that `Context::cancel` points to; a second one kills.
const std::atomic<bool>* watch_interrupts();

}  // namespace quench::cli
