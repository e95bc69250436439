// SPDX-License-Identifier: Apache-2.0
// Quantisation: QuantizeLinear and its relatives, and com.microsoft's QLinear operators.
#include "ops/context.h"

namespace quench::ops {
namespace {

std::optional<Dims> copy(const Dims* dims) {
  return dims == nullptr ? std::nullopt : std::optional(*dims);
}

/// A scale a channel must have as many entries as the axis; blocks must cover the axis.
void check_scale(const InferContext& context) {
  const Dims* input = context.shape(0);
  const Dims* scale = context.shape(1);
  if (input == nullptr || scale == nullptr || scale->size() != 1) return;
  if (scale->front().value == 1 && input->size() != 1) return;  // read as one scale for all
  const std::int64_t axis = context.node().get_int("axis", 1);
  if (context.opset() < 13 || input->empty()) return;
  if (input->size() == 1 && scale->front().value == 1) return;
  const Dim& channels = (*input)[checked_axis(axis, input->size())];
  if (!unify(channels, scale->front())) {
    fail(ErrorKind::BadModel, "there are {} scales for the {} elements of axis {}",
         scale->front().value, channels.value, axis);
  }
}

DType attribute_dtype(const InferContext& context, std::string_view name) {
  return static_cast<DType>(context.node().get_int(name, 0));
}

}  // namespace

void infer_quantize_linear(InferContext& context) {
  check_scale(context);
  DType dtype = attribute_dtype(context, "output_dtype");
  if (context.has_input(2))
    dtype = context.dtype(2);
  else if (dtype == DType::Undefined)
    dtype = DType::UInt8;
  context.set(0, dtype, copy(context.shape(0)));
}

void infer_dequantize_linear(InferContext& context) {
  check_scale(context);
  DType dtype = attribute_dtype(context, "output_dtype");
  if (dtype == DType::Undefined) dtype = context.dtype(1);
  context.set(0, dtype, copy(context.shape(0)));
}

void infer_dynamic_quantize(InferContext& context) {
  context.set(0, DType::UInt8, copy(context.shape(0)));
  context.set(1, DType::Float32, Dims{});
  context.set(2, DType::UInt8, Dims{});
}

/// com.microsoft QLinearAdd and QLinearMul: a, its scale and zero point, then b and so on.
void infer_qlinear_binary(InferContext& context) {
  const Dims* a = context.shape(0);
  const Dims* b = context.shape(3);
  context.set(0, context.dtype(0),
              a == nullptr || b == nullptr ? std::nullopt : std::optional(broadcast(*a, *b)));
}

}  // namespace quench::ops
