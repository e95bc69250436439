// SPDX-License-Identifier: Apache-2.0
// How much memory the process holds, and the most it held since a mark.
#include "base/memory.h"

#include <malloc.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

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
