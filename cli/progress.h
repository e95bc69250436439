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

/// "[#####-----]  50% evaluate 500/1000, 123.4/s, 0:04 left", cut to `width` columns.
std::string bar_line(const Progress& progress, double seconds, int width);

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
  std::int64_t first_done_ = 0;
  Clock::time_point start_;
  Clock::time_point last_draw_;
};

/// Makes Ctrl-C and SIGTERM set the flag that `Context::cancel` points to; a second one kills.
const std::atomic<bool>* watch_interrupts();

}  // namespace quench::cli
