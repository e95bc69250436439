// SPDX-License-Identifier: Apache-2.0
// Functions of one element, and of two or more elements with broadcasting.
#include "exec/engine/kernels/common.h"

namespace quench::exec {
namespace {

using Binary = at::Tensor (*)(const at::Tensor&, const at::Tensor&);

/// Before opset 7 the second input is laid along `axis` of the first where the model says so.
at::Tensor aligned(const at::Tensor& b, const at::Tensor& a, std::int64_t axis) {
  if (axis < 0 || b.dim() == 0) return b;
  Ints shape = b.sizes().vec();
  while (static_cast<std::int64_t>(shape.size()) + axis < a.dim()) shape.push_back(1);
  return b.reshape(shape);
}

using BinaryInPlace = at::Tensor& (*)(at::Tensor&, const at::Tensor&);

/// Whether input `i` may take the result: nobody else reads it and the other broadcasts to it.
bool may_take(const Call& call, std::size_t i) {
  const at::Tensor& a = call.in(i);
  const at::Tensor& b = call.in(1 - i);
  if (!call.dies(i) || !at::isFloatingType(a.scalar_type()) || b.dim() > a.dim()) return false;
  for (std::int64_t d = 1; d <= b.dim(); ++d) {
    if (b.size(-d) != 1 && b.size(-d) != a.size(-d)) return false;
  }
  return a.scalar_type() == b.scalar_type();
}

/// Writes the result over an input that nobody reads any more, if there is one.
template <BinaryInPlace kInPlace, bool kCommutes>
bool write_over(Call& call) {
  if constexpr (kIsGiven<kInPlace>) {
    for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
      if ((i == 1 && !kCommutes) || !may_take(call, i)) continue;
      at::Tensor result = call.in(i);
      kInPlace(result, call.in(1 - i));
      call.set(0, std::move(result));
      return true;
    }
  }
  return false;
}

template <Binary kFunction, BinaryInPlace kInPlace = nullptr, bool kCommutes = false>
Kernel make_binary(const OpContext& context) {
  const std::int64_t axis = context.opset < 7 ? context.node.get_int("axis", -1) : -1;
  if (axis >= 0) {
    return [axis](Call& call) {
      const at::Tensor& a = call.in(0);
      call.set(0, kFunction(a, aligned(call.in(1), a, axis)));
    };
  }
  return [](Call& call) {
    if (write_over<kInPlace, kCommutes>(call)) return;
    call.set(0, kFunction(call.in(0), call.in(1)));
  };
}

template <Binary kFunction, BinaryInPlace kInPlace = nullptr, bool kCommutes = false>
KernelInfo binary(std::int64_t since = 1) {
  return {.since = since, .make = make_binary<kFunction, kInPlace, kCommutes>};
}

/// Any number of inputs, folded from the left.
template <Binary kFunction>
KernelInfo variadic() {
  return {.since = 1, .make = [](const OpContext&) -> Kernel {
            return [](Call& call) {
              at::Tensor result = call.in(0);
              for (std::size_t i = 1; i < call.num_in(); ++i) {
                result = kFunction(result, call.in(i));
              }
              call.set(0, std::move(result));
            };
          }};
}

at::Tensor add(const at::Tensor& a, const at::Tensor& b) { return at::add(a, b); }
at::Tensor sub(const at::Tensor& a, const at::Tensor& b) { return at::sub(a, b); }
at::Tensor& add_to(at::Tensor& a, const at::Tensor& b) { return a.add_(b); }
at::Tensor& sub_from(at::Tensor& a, const at::Tensor& b) { return a.sub_(b); }
at::Tensor& mul_with(at::Tensor& a, const at::Tensor& b) { return a.mul_(b); }
at::Tensor& div_by(at::Tensor& a, const at::Tensor& b) { return a.div_(b); }
at::Tensor div(const at::Tensor& a, const at::Tensor& b) {
  return at::isIntegralType(a.scalar_type(), true) ? at::div(a, b, "trunc") : at::div(a, b);
}
at::Tensor pow(const at::Tensor& a, const at::Tensor& b) {
  // One exponent for all is by far the most common case, and libtorch knows squares and roots.
  if (b.numel() == 1 && b.dim() <= a.dim() && at::isFloatingType(a.scalar_type())) {
    return at::pow(a, b.item());
  }
  // Integers lie on the CPU.
  const at::Device place = a.is_cuda() ? a.device() : b.device();
  return at::pow(a.to(place), b.to(place)).to(a.scalar_type());
}
at::Tensor logical_and(const at::Tensor& a, const at::Tensor& b) { return at::logical_and(a, b); }
at::Tensor is_not(const at::Tensor& x) { return at::logical_not(x); }
at::Tensor round_half_even(const at::Tensor& x) { return at::round(x); }
/// Rounding does nothing to integers, and libtorch refuses them.
template <at::Tensor (*kFunction)(const at::Tensor&)>
at::Tensor on_floats(const at::Tensor& x) {
  return at::isFloatingType(x.scalar_type()) ? kFunction(x) : x;
}

Kernel make_mod(const OpContext& context) {
  // fmod takes the sign of the dividend, the other that of the divisor.
  const bool c_style = context.node.get_int("fmod", 0) != 0;
  return [c_style](Call& call) {
    const at::Tensor& a = call.in(0);
    const at::Tensor& b = call.in(1);
    if (c_style) return call.set(0, at::fmod(a, b));
    const at::Tensor rest = at::remainder(a, b);
    // A zero has the sign of the divisor, too.
    const bool floats = at::isFloatingType(a.scalar_type());
    call.set(0, floats ? at::where(rest == 0, at::copysign(rest, b), rest) : rest);
  };
}

Kernel make_mean(const OpContext&) {
  return [](Call& call) {
    at::Tensor result = call.in(0);
    for (std::size_t i = 1; i < call.num_in(); ++i) result = at::add(result, call.in(i));
    call.set(0, at::div(result, static_cast<double>(call.num_in())));
  };
}

Kernel make_is_inf(const OpContext& context) {
  const bool negative = context.node.get_int("detect_negative", 1) != 0;
  const bool positive = context.node.get_int("detect_positive", 1) != 0;
  return map_input([=](const at::Tensor& x) {
    if (negative && positive) return at::isinf(x);
    if (positive) return at::isposinf(x);
    if (negative) return at::isneginf(x);
    return at::zeros_like(x, at::kBool);
  });
}

Kernel make_bit_shift(const OpContext& context) {
  const std::string direction = context.node.get_string("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") {
    return refuse("direction must be LEFT or RIGHT, not '{}'", direction);
  }
  return [left = direction == "LEFT"](Call& call) {
    const at::Tensor& a = call.in(0);
    // Shifts beyond the width: nothing is left but, on the right, the sign.
    const auto width = static_cast<std::int64_t>(8 * a.element_size());
    const at::Tensor outside = at::logical_or(call.in(1) < 0, call.in(1) >= width);
    const at::Tensor by = call.in(1).masked_fill(outside, width - 1);
    const at::Tensor shifted =
        left ? at::bitwise_left_shift(a, by) : at::bitwise_right_shift(a, by);
    const at::Tensor rest = left ? at::zeros_like(a) : at::where(a < 0, -1, 0).to(a.scalar_type());
    call.set(0, at::where(outside, rest, shifted));
  };
}

Kernel make_where(const OpContext&) {
  return [](Call& call) {
    const at::Tensor& a = call.in(1);
    const at::Tensor& b = call.in(2);
    // A condition is no number, and lies on the CPU until here.
    call.set(0, at::where(call.in(0).to(a.is_cuda() ? a.device() : b.device()), a, b));
  };
}

}  // namespace

KernelInfo kernel_Abs() { return unary<at::abs, at::abs_>(); }
KernelInfo kernel_Neg() { return unary<at::neg, at::neg_>(); }
KernelInfo kernel_Ceil() { return unary<on_floats<at::ceil>>(); }
KernelInfo kernel_Floor() { return unary<on_floats<at::floor>>(); }
KernelInfo kernel_Round() { return unary<on_floats<round_half_even>>(11); }
KernelInfo kernel_Sqrt() { return unary<at::sqrt, at::sqrt_>(); }
KernelInfo kernel_Reciprocal() { return unary<at::reciprocal, at::reciprocal_>(); }
KernelInfo kernel_Exp() { return unary<at::exp, at::exp_>(); }
KernelInfo kernel_Log() { return unary<at::log, at::log_>(); }
KernelInfo kernel_Erf() { return unary<at::erf, at::erf_>(9); }
KernelInfo kernel_Sign() { return unary<at::sign>(9); }
KernelInfo kernel_Sin() { return unary<at::sin>(7); }
KernelInfo kernel_Cos() { return unary<at::cos>(7); }
KernelInfo kernel_Tan() { return unary<at::tan>(7); }
KernelInfo kernel_Asin() { return unary<at::asin>(7); }
KernelInfo kernel_Acos() { return unary<at::acos>(7); }
KernelInfo kernel_Atan() { return unary<at::atan>(7); }
KernelInfo kernel_Sinh() { return unary<at::sinh>(9); }
KernelInfo kernel_Cosh() { return unary<at::cosh>(9); }
KernelInfo kernel_Asinh() { return unary<at::asinh>(9); }
KernelInfo kernel_Acosh() { return unary<at::acosh>(9); }
KernelInfo kernel_Atanh() { return unary<at::atanh>(9); }
KernelInfo kernel_IsNaN() { return unary<at::isnan>(9); }
KernelInfo kernel_IsInf() { return {.since = 10, .make = make_is_inf}; }
KernelInfo kernel_Not() { return unary<is_not>(1); }
KernelInfo kernel_BitwiseNot() { return unary<at::bitwise_not>(18); }

KernelInfo kernel_Add() { return binary<add, add_to, true>(); }
KernelInfo kernel_Sub() { return binary<sub, sub_from>(); }
KernelInfo kernel_Mul() { return binary<at::mul, mul_with, true>(); }
KernelInfo kernel_Div() { return binary<div, div_by>(); }
KernelInfo kernel_Pow() { return binary<pow>(); }
KernelInfo kernel_Mod() { return {.since = 10, .make = make_mod}; }
KernelInfo kernel_And() { return binary<logical_and>(); }
KernelInfo kernel_Or() { return binary<at::logical_or>(); }
KernelInfo kernel_Xor() { return binary<at::logical_xor>(); }
KernelInfo kernel_BitwiseAnd() { return binary<at::bitwise_and>(18); }
KernelInfo kernel_BitwiseOr() { return binary<at::bitwise_or>(18); }
KernelInfo kernel_BitwiseXor() { return binary<at::bitwise_xor>(18); }
KernelInfo kernel_BitShift() { return {.since = 11, .make = make_bit_shift}; }
KernelInfo kernel_Equal() { return binary<at::eq>(); }
KernelInfo kernel_Greater() { return binary<at::gt>(); }
KernelInfo kernel_GreaterOrEqual() { return binary<at::ge>(12); }
KernelInfo kernel_Less() { return binary<at::lt>(); }
KernelInfo kernel_LessOrEqual() { return binary<at::le>(12); }
KernelInfo kernel_Sum() { return variadic<add>(); }
KernelInfo kernel_Max() { return variadic<at::maximum>(); }
KernelInfo kernel_Min() { return variadic<at::minimum>(); }
KernelInfo kernel_Mean() { return {.since = 1, .make = make_mean}; }
KernelInfo kernel_Where() { return {.since = 9, .make = make_where, .any_float = true}; }

}  // namespace quench::exec
