// SPDX-License-Identifier: Apache-2.0
// Paddle's multiclass non-maximum suppressions in standard operators.
#pragma once

#include "formats/paddle/op.h"

namespace quench::paddle {

void read_multiclass_nms(Op& op);
/// Scores fall with the overlap with better boxes instead of boxes going.
void read_matrix_nms(Op& op);

}  // namespace quench::paddle
