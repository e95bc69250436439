// SPDX-License-Identifier: Apache-2.0
// A cap on instruction sets for a part of a test.
#pragma once

#include "quench/cpu.h"

namespace quench::testing {

class IsaScope {
 public:
  explicit IsaScope(Isa isa) : before_(max_isa()) { set_max_isa(isa); }
  ~IsaScope() { set_max_isa(before_); }
  IsaScope(const IsaScope&) = delete;
  IsaScope& operator=(const IsaScope&) = delete;

 private:
  Isa before_;
};

}  // namespace quench::testing
