// SPDX-License-Identifier: Apache-2.0
// PaddleSlim's name for abs_max where weights have a scale for each channel: the plan says which.
#include "qat/engine/quanters.h"

namespace quench::qat {

std::unique_ptr<Quanter> make_channel_wise_abs_max(const QuanterSetup& setup) {
  return make_abs_max(setup);
}

}  // namespace quench::qat
