// SPDX-License-Identifier: Apache-2.0
// Activations.
#include "exec/engine/kernel.h"

namespace quench::exec {

KernelInfo kernel_Relu() {
  return {.since = 6, .make = [](const OpContext&) -> Kernel {
            return [](Call& call) { call.set(0, at::relu(call.in(0))); };
          }};
}

}  // namespace quench::exec
