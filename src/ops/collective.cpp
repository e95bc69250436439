// SPDX-License-Identifier: Apache-2.0
// Operators between the processes that run a model together.
#include "ops/context.h"

namespace quench::ops {

void infer_all_gather(InferContext& context) {
  const std::int64_t size = context.node().get_int("group_size", 1);
  if (size < 1) fail(ErrorKind::BadModel, "group_size is {}", size);
  const Dims* input = context.shape(0);
  if (input == nullptr) return context.set(0, context.dtype(0), std::nullopt);
  Dims result = *input;
  Dim& joined = result[checked_axis(context.node().get_int("axis", 0), input->size())];
  joined = size == 1 ? joined : (SymInt(joined) * SymInt(size)).dim();
  context.set(0, context.dtype(0), std::move(result));
}

}  // namespace quench::ops
