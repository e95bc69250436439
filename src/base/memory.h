// SPDX-License-Identifier: Apache-2.0
// How much memory the process holds, and the most it held since a mark.
#pragma once

namespace quench {

/// Marks the present as the base line; `peak_mb` says how far above it the process has been since.
class PeakMemory {
 public:
  PeakMemory();
  double peak_mb() const;

 private:
  double base_mb_ = 0;
};

}  // namespace quench
