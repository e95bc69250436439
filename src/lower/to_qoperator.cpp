// SPDX-License-Identifier: Apache-2.0
// Q/DQ around a node as one integer operator.
#include "base/format.h"
#include "quench/lower.h"

namespace quench {

Model to_qoperator(const Model& /*qdq*/) {
  fail(
      ErrorKind::Unsupported,
      "QLinear operators cannot be written yet: use the format qdq, which runtimes turn into them");
}

}  // namespace quench
