// SPDX-License-Identifier: Apache-2.0
// Pooling, global pooling and MaxUnpool.
#include "ops/window.h"

namespace quench::ops {
namespace {

/// The layout of com.microsoft's pools: NCHW, or NHWC with channels_last.
std::optional<Dims> pool_shape(const InferContext& context) {
  expect_min_rank(context, 0, 3);
  const Dims* input = context.shape(0);
  if (input == nullptr) return std::nullopt;
  const auto kernel = context.node().get_ints("kernel_shape");
  if (kernel.size() + 2 != input->size()) {
    fail(ErrorKind::BadModel, "kernel_shape has {} entries, but input {} has {} spatial dimensions",
         kernel.size(), shape_text(*input), input->size() - 2);
  }
  const Window window = read_window(context.node(), kernel);
  const std::size_t first = context.node().get_int("channels_last", 0) != 0 ? 1 : 2;
  Dims result = *input;
  for (std::size_t i = 0; i < window.rank(); ++i) {
    result[first + i] = window_places(window, i, (*input)[first + i]);
  }
  return result;
}

std::optional<Dims> global_shape(const InferContext& context) {
  expect_min_rank(context, 0, 3);
  const Dims* input = context.shape(0);
  if (input == nullptr) return std::nullopt;
  const std::size_t first = context.node().get_int("channels_last", 0) != 0 ? 1 : 2;
  Dims result = *input;
  for (std::size_t i = 0; i + 2 < result.size(); ++i) result[first + i] = Dim{1, {}};
  return result;
}

}  // namespace

void infer_pool(InferContext& context) {
  auto dims = pool_shape(context);
  context.set(1, DType::Int64, dims);
  context.set(0, context.dtype(0), std::move(dims));
}

void infer_global_pool(InferContext& context) {
  context.set(0, context.dtype(0), global_shape(context));
}

void infer_max_unpool(InferContext& context) {
  const Dims* input = context.shape(0);
  context.set(0, context.dtype(0), std::nullopt);
  if (const SymInts* size = context.ints(2)) {
    context.set(0, context.dtype(0), to_dims(*size));
    return;
  }
  if (input == nullptr) return;
  Dims result = unknown_dims(input->size());
  const auto kernel = context.node().get_ints("kernel_shape");
  if (input->size() < 3 || kernel.size() + 2 != input->size()) {
    fail(ErrorKind::BadModel, "kernel_shape has {} entries, which does not fit input {}",
         kernel.size(), shape_text(*input));
  }
  result[0] = (*input)[0];
  result[1] = (*input)[1];
  const Window window = read_window(context.node(), kernel);
  for (std::size_t i = 0; i < window.rank() && !context.has_input(2); ++i) {
    const SymInt moved = (SymInt((*input)[i + 2]) - SymInt(1)) * SymInt(window.strides[i]);
    const std::int64_t pads = window.pads[i] + window.pads[i + window.rank()];
    result[i + 2] = (moved + SymInt(window.kernel[i] - pads)).dim();
  }
  context.set(0, context.dtype(0), std::move(result));
}

void infer_max_roi_pool(InferContext& context) {
  const Dims* input = context.shape(0);
  const Dims* rois = context.shape(1);
  const auto pooled = context.node().get_ints("pooled_shape");
  if (pooled.size() != 2) {
    fail(ErrorKind::BadModel, "pooled_shape must have 2 entries, but has {}", pooled.size());
  }
  expect_rank(context, 0, 4);
  expect_rank(context, 1, 2);
  context.set(0, context.dtype(0),
              Dims{rois == nullptr ? Dim{} : (*rois)[0], input == nullptr ? Dim{} : (*input)[1],
                   SymInt(pooled[0]).dim(), SymInt(pooled[1]).dim()});
}

}  // namespace quench::ops
