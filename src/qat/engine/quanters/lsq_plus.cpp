// SPDX-License-Identifier: Apache-2.0
// LSQ+ (Bhalgat et al., 2020): the offset of asymmetric activations is learned too, and the first
// scale comes from the first batches where nothing was calibrated.
#include "qat/engine/quanters/learned.h"

namespace quench::qat {

std::unique_ptr<Quanter> make_lsq_plus(const QuanterSetup& setup) {
  return std::make_unique<LearnedScale>(setup, !setup.is_weight && !setup.spec.symmetric);
}

}  // namespace quench::qat
