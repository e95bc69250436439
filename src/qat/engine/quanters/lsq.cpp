// SPDX-License-Identifier: Apache-2.0
// LSQ: the scale is learned (Esser et al., 2020), from the one that was calibrated.
#include "qat/engine/quanters/learned.h"

namespace quench::qat {

std::unique_ptr<Quanter> make_lsq(const QuanterSetup& setup) {
  return std::make_unique<LearnedScale>(setup, /*learns_offset=*/false);
}

}  // namespace quench::qat
