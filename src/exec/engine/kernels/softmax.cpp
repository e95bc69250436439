// SPDX-License-Identifier: Apache-2.0
// Softmax over the last axis by our own loops.
#include "exec/engine/kernels/common.h"
#include "exec/engine/kernels/rows.h"
#include "exec/engine/parallel.h"

namespace quench::exec {

at::Tensor fast_softmax(const at::Tensor& given, std::int64_t axis) {
  if (given.scalar_type() != at::kFloat || axis != given.dim() - 1) return at::softmax(given, axis);
  /// Elements that are worth a second thread.
  constexpr std::int64_t kGrain = 1 << 13;
  /// Rows of so few columns do not fill registers.
  constexpr std::int64_t kShort = 8;
  const at::Tensor x = given.contiguous();
  at::Tensor dst = at::empty_like(x);
  const std::int64_t columns = x.size(-1);
  if (x.numel() == 0) return dst;
  const float* src = x.data_ptr<float>();
  float* to = dst.data_ptr<float>();
  share(0, x.numel() / columns, std::max<std::int64_t>(kGrain / columns, 1),
        [&](std::int64_t begin, std::int64_t end) {
          if (columns <= kShort) {
            return softmax_short_rows_loop(src + begin * columns, to + begin * columns, end - begin,
                                           columns);
          }
          for (std::int64_t row = begin; row < end; ++row) {
            softmax_loop(src + row * columns, to + row * columns, columns);
          }
        });
  return dst;
}

}  // namespace quench::exec
