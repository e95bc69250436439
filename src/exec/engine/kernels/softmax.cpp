// SPDX-License-Identifier: Apache-2.0
// Softmax over the last axis, with the factor and the mask that attention puts in front of it.
#include "exec/engine/kernels/softmax.h"

#include "exec/engine/kernels/common.h"
#include "exec/engine/kernels/rows.h"
#include "exec/engine/parallel.h"

namespace quench::exec {
namespace {

/// Elements that are worth a second thread.
constexpr std::int64_t kGrain = 1 << 13;
/// Rows of so few columns do not fill registers.
constexpr std::int64_t kShort = 8;

at::Tensor softmax_rows(const at::Tensor& given, float scale, const at::Tensor& mask) {
  const at::Tensor x = given.contiguous();
  at::Tensor dst = at::empty_like(x);
  const std::int64_t columns = x.size(-1);
  if (x.numel() == 0) return dst;
  const RowPointers masks(mask, x.sizes());
  const float* src = x.data_ptr<float>();
  float* to = dst.data_ptr<float>();
  share(0, x.numel() / columns, std::max<std::int64_t>(kGrain / columns, 1),
        [&](std::int64_t begin, std::int64_t end) {
          if (columns <= kShort && !mask.defined()) {
            return softmax_short_rows_loop(src + begin * columns, scale, to + begin * columns,
                                           end - begin, columns);
          }
          for (std::int64_t row = begin; row < end; ++row) {
            softmax_loop(src + row * columns, scale, masks[row], to + row * columns, columns);
          }
        });
  return dst;
}

/// Inputs X and mask; attribute `scale`.
Kernel make_scaled_softmax(const OpContext& context) {
  return sharing([scale = context.node.get_float("scale", 1.0F)](Call& call) {
    call.set(0, scaled_softmax(call.in(0), scale, call.in(1)));
  });
}

}  // namespace

at::Tensor scaled_softmax(const at::Tensor& x, float scale, const at::Tensor& mask) {
  const bool fits =
      x.dim() > 0 && x.scalar_type() == at::kFloat &&
      (!mask.defined() || (mask.scalar_type() == at::kFloat && mask.dim() <= x.dim() &&
                           at::infer_size(x.sizes(), mask.sizes()) == x.sizes()));
  if (fits) return softmax_rows(x, scale, mask);
  const at::Tensor scaled = x * scale;
  return at::softmax(mask.defined() ? scaled + mask : scaled, -1);
}

at::Tensor fast_softmax(const at::Tensor& x, std::int64_t axis) {
  if (x.scalar_type() != at::kFloat || axis != x.dim() - 1) return at::softmax(x, axis);
  return softmax_rows(x, 1.0F, {});
}

KernelInfo kernel_ScaledSoftmax() { return {.make = make_scaled_softmax}; }

}  // namespace quench::exec
