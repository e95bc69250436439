// SPDX-License-Identifier: Apache-2.0
// How much memory the process holds, and the most it held since a mark.
#pragma once

#include <cstdint>

namespace quench {

struct Context;

/// Bytes that the process may come to hold: what the context allows, else what the system does.
std::uint64_t memory_limit(const Context& context);
/// What the context allows; 0: there is no ceiling.
std::uint64_t memory_ceiling(const Context& context);
/// Bytes that it holds now: its resident set.
std::uint64_t resident_bytes();
/// Hands freed memory that the heap has kept back to the system.
void give_back_memory();

/// Marks the present as the base line; `peak_mb` says how far above it the process has been since.
class PeakMemory {
 public:
  PeakMemory();
  double peak_mb() const;

 private:
  double base_mb_ = 0;
};

}  // namespace quench
