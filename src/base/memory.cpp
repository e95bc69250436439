// SPDX-License-Identifier: Apache-2.0
// How much memory the process holds, and the most it held since a mark.
#include "base/memory.h"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

#include "quench/context.h"

namespace quench {
namespace {

/// A field of /proc/self/status in MiB; the kernel writes it in KiB.
double status_mb(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(field + ":", 0) != 0) continue;
    double kib = 0;
    std::istringstream(line.substr(field.size() + 1)) >> kib;
    return kib / 1024.0;
  }
  return 0;
}

}  // namespace

std::uint64_t memory_ceiling(const Context& context) {
  constexpr std::uint64_t kMB = 1'000'000;
  return kMB * static_cast<std::uint64_t>(std::max(0, context.max_memory_mb));
}

std::uint64_t memory_limit(const Context& context) {
  if (context.max_memory_mb > 0) return memory_ceiling(context);
  std::uint64_t limit = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                        static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  rlimit space{};
  if (::getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY) {
    limit = std::min<std::uint64_t>(limit, space.rlim_cur);
  }
  return limit;
}

std::uint64_t resident_bytes() {
  std::ifstream sizes("/proc/self/statm");
  std::uint64_t all = 0;
  std::uint64_t resident = 0;
  sizes >> all >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

void give_back_memory() { malloc_trim(0); }

PeakMemory::PeakMemory() {
  // What an earlier model left in the heap would hide what the next one needs.
  malloc_trim(0);
  // "5" resets the peak to the present. Where that is not allowed, the peak since the start stays,
  // which is never too small.
  std::ofstream("/proc/self/clear_refs") << "5";
  base_mb_ = status_mb("VmRSS");
}

double PeakMemory::peak_mb() const { return std::max(0.0, status_mb("VmHWM") - base_mb_); }

}  // namespace quench
