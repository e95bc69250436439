// SPDX-License-Identifier: Apache-2.0
// A progress bar on stderr when that is a terminal, log lines, and Ctrl-C.
#include "cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>

#include "cli/errors.h"
#include "cli/style.h"

namespace quench::cli {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);
std::atomic<bool> stop_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may only touch these");

int terminal_width() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

std::string duration(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::clamp(seconds, 0.0, 359999.0));
  if (whole >= 3600)
    return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

extern "C" void request_stop(int signal) {
  stop_requested.store(true);
  // The next one ends the program even if the work never looks at the flag.
  std::signal(signal, SIG_DFL);
}

}  // namespace

double JobShare::update(const Progress& progress) {
  if (progress.phase != phase_) {
    phase_ = progress.phase;
    begun_ = share_;
  }
  const double done =
      progress.total <= 0
          ? 0
          : std::clamp(static_cast<double>(progress.done) / static_cast<double>(progress.total),
                       0.0, 1.0);
  share_ = std::max(share_, begun_ + (1 - begun_) * 0.5 * done);
  return share_;
}

std::string bar_line(const Progress& progress, double share, double seconds, int width) {
  constexpr std::size_t kCells = 24;
  const auto filled = static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * kCells);
  std::string line =
      fmt::format("[{}{}] ", std::string(filled, '#'), std::string(kCells - filled, '-'));
  const double rate = seconds > 0 ? static_cast<double>(progress.done) / seconds : 0;
  if (progress.total > 0) {
    const std::int64_t done = std::clamp<std::int64_t>(progress.done, 0, progress.total);
    line += fmt::format("{} {}/{}", progress.phase, done, progress.total);
    if (rate > 0) {
      const double left = static_cast<double>(progress.total - done) / rate;
      line += fmt::format(", {:.1f}/s, {} left", rate, duration(left));
    }
  } else {
    line += fmt::format("{} {}", progress.phase, progress.done);
    if (rate > 0) line += fmt::format(", {:.1f}/s, {}", rate, duration(seconds));
  }
  // The last column stays free: some terminals wrap when it is written.
  return line.substr(0, static_cast<std::size_t>(std::max(width - 1, 1)));
}

ProgressBar::ProgressBar() : terminal_(isatty(STDERR_FILENO) == 1) {}

ProgressBar::~ProgressBar() { clear(); }

void ProgressBar::update(const Progress& progress) {
  if (!terminal_) return;
  const std::lock_guard lock(mutex_);
  const Clock::time_point now = Clock::now();
  if (progress.phase != phase_ || progress.done < first_done_) {
    phase_ = progress.phase;
    first_done_ = progress.done;
    start_ = now;
  }
  const double share = share_.update(progress);
  if (drawn_ && now - last_draw_ < kRedraw) return;
  last_draw_ = now;
  drawn_ = true;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const std::string line = printable(bar_line(progress, share, seconds, terminal_width()));
  std::fprintf(stderr, "\r\033[K%s", line.c_str());
  std::fflush(stderr);
}

void ProgressBar::log(LogLevel level, std::string_view line) {
  const std::lock_guard lock(mutex_);
  erase();
  const bool warning = level == LogLevel::Warning;
  const std::string name =
      warning ? styled(STDERR_FILENO, Style::Warning, "warning") : std::string("info");
  std::fprintf(stderr, "%s %s\n", name.c_str(), printable(line).c_str());
}

void ProgressBar::clear() {
  const std::lock_guard lock(mutex_);
  erase();
}

void ProgressBar::erase() {
  if (drawn_) std::fputs("\r\033[K", stderr);
  drawn_ = false;
}

const std::atomic<bool>* watch_interrupts() {
  std::signal(SIGINT, request_stop);
  std::signal(SIGTERM, request_stop);
  return &stop_requested;
}

}  // namespace quench::cli
