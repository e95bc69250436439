// SPDX-License-Identifier: Apache-2.0
// Q/DQ around a node as one integer operator.
#include "quench/lower.h"

namespace quench {

Model to_qoperator(const Model& qdq) { return qdq; }

}  // namespace quench
