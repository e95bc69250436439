// SPDX-License-Identifier: Apache-2.0
// Paddle's multiclass non-maximum suppression in standard operators.
#pragma once

#include "formats/paddle/op.h"

namespace quench::paddle {

void read_multiclass_nms(Op& op);

}  // namespace quench::paddle
