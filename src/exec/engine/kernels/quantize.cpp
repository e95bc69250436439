// SPDX-License-Identifier: Apache-2.0
// Quantisation operators, computed exactly as ONNX writes them down.
#include "exec/engine/kernels/quantize.h"

#include <array>

#include "exec/engine/bridge.h"
#include "exec/engine/cuda/quantize.h"
#include "exec/engine/int8/bytes.h"
#include "exec/engine/int8/layers.h"
#include "exec/engine/kernels/common.h"
#include "exec/engine/kernels/conv.h"

namespace quench::exec {
namespace {

bool is_quantised_type(DType type) {
  return type == DType::UInt8 || type == DType::Int8 || type == DType::UInt16 ||
         type == DType::Int16;
}

/// A scale or zero point laid out beside the tensor it belongs to: one for all, one for each
/// element of an axis, or one for each block along it.
at::Tensor beside(const at::Tensor& parameter, const at::Tensor& x, std::int64_t axis,
                  std::int64_t block) {
  if (parameter.numel() == 1 && block == 0) return parameter.reshape({});
  const std::int64_t along = wrap_axis(axis, x.dim());
  const at::Tensor own = parameter.to(x.device());  // zero points are integers, which stay here
  if (own.dim() <= 1) return along_axis(own, along, x.dim());
  if (block <= 0) fail(ErrorKind::BadData, "scales of rank {} need block_size", own.dim());
  return own.repeat_interleave(block, along).narrow(along, 0, x.size(along));
}

Kernel make_quantize(const OpContext& context) {
  const std::int64_t axis = context.node.get_int("axis", 1);
  const std::int64_t block = context.node.get_int("block_size", 0);
  const auto wanted = static_cast<DType>(context.node.get_int("output_dtype", 0));
  const DType dtype = context.has_input(2)         ? context.input_dtype(2)
                      : wanted == DType::Undefined ? DType::UInt8
                                                   : wanted;
  const auto type = scalar_type(dtype);
  if (dtype != DType::Undefined && !is_quantised_type(dtype)) {
    return refuse("quantising to {} is not supported", name_of(dtype));
  }
  const auto params = block == 0 && context.fast ? take_params(context, 1, 2, dtype) : std::nullopt;
  if (params)
    return sharing([params = *params](Call& call) {
      call.set(0, quantize_floats(call.in(0).to(at::kFloat), params));
    });
  return [=](Call& call) {
    const at::Tensor& given = call.in(0);
    const at::Tensor x = at::isFloatingType(given.scalar_type()) ? given : given.to(at::kFloat);
    const at::ScalarType to = call.has(2) ? call.in(2).scalar_type() : type.value_or(at::kByte);
    const auto done = quantize_on_gpu(x, call.in(1), call.has(2) ? call.in(2) : at::Tensor(), to);
    if (done) return call.set(0, *done);
    const at::Tensor scale = beside(call.in(1), x, axis, block);
    const at::Tensor zero = call.has(2) ? beside(call.in(2), x, axis, block) : at::Tensor();
    call.set(0, to_integers(at::round(x / scale), zero, to));
  };
}

Kernel make_dequantize(const OpContext& context) {
  const std::int64_t axis = context.node.get_int("axis", 1);
  const std::int64_t block = context.node.get_int("block_size", 0);
  const DType from = context.input_dtype(0);
  const bool bytes = from == DType::UInt8 || from == DType::Int8;
  const bool plain =
      bytes && block == 0 && context.fast && context.input_dtype(1) == DType::Float32;
  if (const auto params = plain ? take_params(context, 1, 2, from) : std::nullopt) {
    return sharing(
        [params = *params](Call& call) { call.set(0, dequantize_bytes(call.in(0), params)); });
  }
  return [=](Call& call) {
    const at::Tensor& x = call.in(0);
    const auto done = dequantize_on_gpu(x, call.in(1), call.has(2) ? call.in(2) : at::Tensor());
    if (done) return call.set(0, *done);
    const at::Tensor scale = beside(call.in(1), x, axis, block);
    at::Tensor steps = x.to(at::kInt);
    if (call.has(2)) steps = steps - beside(call.in(2), x, axis, block).to(at::kInt);
    call.set(0, steps.to(call.in(1).scalar_type()) * scale);
  };
}

Kernel make_dynamic_quantize(const OpContext&) {
  return sharing([](Call& call) {
    const DynamicBytes x = dynamic_quantize(call.in(0));
    call.set(0, x.bytes);
    call.set(1, one_number(x.params.scale, at::kFloat));
    call.set(2, one_number(static_cast<std::uint8_t>(x.params.zero), at::kByte));
  });
}

/// A matrix's zero point: for one row of the left factor or one column of the right one.
at::Tensor shifted(const at::Tensor& x, const at::Tensor& zero, std::int64_t axis) {
  at::Tensor wide = x.to(at::kDouble);
  if (!zero.defined()) return wide;
  if (zero.numel() == 1 || zero.dim() > 1) {
    return wide - (zero.numel() == 1 ? zero.reshape({}) : zero).to(at::kDouble);
  }
  return wide - along_axis(zero, wrap_axis(axis, x.dim()), x.dim()).to(at::kDouble);
}

/// A parameter for each row or column of a product, or one for all.
at::Tensor for_product(const at::Tensor& parameter, const at::Tensor& x, std::int64_t axis) {
  if (parameter.numel() == 1) return parameter.reshape({});
  if (parameter.dim() > 1) return parameter;
  return along_axis(parameter, wrap_axis(axis, x.dim()), x.dim());
}

Kernel make_matmul_integer(const OpContext& context) {
  if (auto fast = make_integer_sums(context)) return std::move(*fast);
  context.taken.clear();
  return [](Call& call) {
    // Doubles hold every sum of int8 products exactly, and libtorch multiplies them fast.
    const at::Tensor a = shifted(call.in(0), call.in(2), -2);
    const at::Tensor b = shifted(call.in(1), call.in(3), -1);
    call.set(0, at::matmul(a, b).to(at::kInt));
  };
}

Kernel make_qlinear_matmul(const OpContext& context) {
  if (auto fast = make_integer_matmul(context)) return std::move(*fast);
  context.taken.clear();
  return [](Call& call) {
    const at::Tensor a = shifted(call.in(0), call.in(2), -2);
    const at::Tensor b = shifted(call.in(3), call.in(5), -1);
    const at::Tensor sums = at::matmul(a, b);
    const at::Tensor left = for_product(call.in(1), a, -2).to(at::kFloat);
    const at::Tensor right = for_product(call.in(4), b, -1).to(at::kFloat);
    const at::Tensor scale = left * right / for_product(call.in(6), sums, -2).to(at::kFloat);
    const at::Tensor& zero = call.in(7);
    call.set(0, to_integers(at::round(sums.to(at::kFloat) * scale), for_product(zero, sums, -2),
                            zero.scalar_type()));
  };
}

at::Tensor weights_shifted(const at::Tensor& weight, const at::Tensor& zero) {
  return shifted(weight, zero, 0);
}

Kernel make_conv_integer(const OpContext& context) {
  if (auto fast = make_integer_conv_sums(context)) return std::move(*fast);
  context.taken.clear();
  std::string refusal;
  const auto attributes = conv_attributes(context, 1, refusal);
  if (!attributes) return Kernel::Refusal{refusal};
  return [attributes = *attributes](Call& call) {
    const at::Tensor x = shifted(call.in(0), call.in(2), 1);
    const at::Tensor weight = weights_shifted(call.in(1), call.in(3));
    call.set(0, convolve(x, weight, {}, attributes).to(at::kInt));
  };
}

Kernel make_qlinear_conv(const OpContext& context) {
  if (auto fast = make_integer_conv(context)) return std::move(*fast);
  context.taken.clear();
  std::string refusal;
  const auto attributes = conv_attributes(context, 3, refusal);
  if (!attributes) return Kernel::Refusal{refusal};
  return [attributes = *attributes](Call& call) {
    const at::Tensor x = shifted(call.in(0), call.in(2), 1);
    const at::Tensor weight = weights_shifted(call.in(3), call.in(5));
    const at::Tensor bias = call.has(8) ? call.in(8).to(at::kDouble) : at::Tensor();
    const at::Tensor sums = convolve(x, weight, bias, attributes);
    const at::Tensor scales =
        call.in(1).reshape({}).to(at::kFloat) *
        (call.in(4).numel() == 1 ? call.in(4).reshape({}) : along_axis(call.in(4), 1, x.dim())) /
        call.in(6).reshape({});
    const at::Tensor& zero = call.in(7);
    call.set(0, to_integers(at::round(sums.to(at::kFloat) * scales), zero.reshape({}),
                            zero.scalar_type()));
  };
}

}  // namespace

at::Tensor to_integers(const at::Tensor& steps, const at::Tensor& zero, at::ScalarType type) {
  std::int64_t low = 0;
  std::int64_t high = 255;
  if (type == at::kChar) low = -128, high = 127;
  if (type == at::kShort) low = -32768, high = 32767;
  if (type == at::kInt) high = 65535;  // how the engine holds uint16
  const at::Tensor moved = zero.defined() ? steps + zero.to(steps.scalar_type()) : steps;
  return at::clamp(moved, low, high).to(type);
}

KernelInfo kernel_QuantizeLinear() { return {.since = 10, .make = make_quantize}; }
KernelInfo kernel_DequantizeLinear() { return {.since = 10, .make = make_dequantize}; }
KernelInfo kernel_DynamicQuantizeLinear() { return {.since = 11, .make = make_dynamic_quantize}; }
KernelInfo kernel_MatMulInteger() { return {.since = 10, .make = make_matmul_integer}; }
KernelInfo kernel_QLinearMatMul() { return {.since = 10, .make = make_qlinear_matmul}; }
KernelInfo kernel_ConvInteger() { return {.since = 10, .make = make_conv_integer}; }
KernelInfo kernel_QLinearConv() { return {.since = 10, .make = make_qlinear_conv}; }

}  // namespace quench::exec
