// SPDX-License-Identifier: Apache-2.0
// Reductions, and operators that look along one axis.
#include <limits>
#include <numeric>

#include "exec/engine/kernels/common.h"

namespace quench::exec {
namespace {

using Reduction = at::Tensor (*)(const at::Tensor&, const Ints& axes, bool keep);

/// Axes are an attribute at first and an input since `input_since`.
template <Reduction kFunction, std::int64_t kInputSince>
Kernel make_reduce(const OpContext& context) {
  const bool keep = context.node.get_int("keepdims", 1) != 0;
  const bool noop = context.node.get_int("noop_with_empty_axes", 0) != 0;
  const IntsSource source(context, "axes", 1, kInputSince);
  return [=](Call& call) {
    const at::Tensor& x = call.in(0);
    Ints axes = source.get(call).value_or(Ints());
    if (axes.empty()) {
      // Nothing is reduced, but what is done to each element still is.
      if (noop) return call.set(0, kFunction(x.unsqueeze(0), {0}, false));
      axes.resize(static_cast<std::size_t>(x.dim()));
      std::iota(axes.begin(), axes.end(), 0);
    }
    if (x.dim() == 0) return call.set(0, kFunction(x.unsqueeze(0), {0}, false));
    call.set(0, kFunction(x, wrap_axes(std::move(axes), x.dim()), keep));
  };
}

template <Reduction kFunction>
KernelInfo reduce() {
  return {.since = 1, .make = make_reduce<kFunction, 18>};
}

at::Tensor sum(const at::Tensor& x, const Ints& axes, bool keep) {
  return at::sum(x, axes, keep, x.scalar_type());
}

at::Tensor mean(const at::Tensor& x, const Ints& axes, bool keep) {
  if (at::isFloatingType(x.scalar_type())) return at::mean(x, axes, keep);
  return at::mean(x, axes, keep, at::kDouble).to(x.scalar_type());
}

at::Tensor prod(const at::Tensor& x, const Ints& axes, bool keep) {
  at::Tensor result = x;
  for (const std::int64_t axis : axes) result = at::prod(result, axis, true, x.scalar_type());
  if (keep) return result;
  Ints shape;
  for (std::int64_t i = 0; i < x.dim(); ++i) {
    if (std::ranges::find(axes, i) == axes.end()) shape.push_back(x.size(i));
  }
  return result.reshape(shape);
}

/// The result over no elements: the value that every other one replaces.
template <bool kMax>
at::Tensor extreme(const at::Tensor& x, const Ints& axes, bool keep) {
  if (x.numel() != 0) return kMax ? at::amax(x, axes, keep) : at::amin(x, axes, keep);
  const at::Tensor shape = at::sum(x, axes, keep);
  if (at::isFloatingType(x.scalar_type())) {
    const double infinity = std::numeric_limits<double>::infinity();
    return at::full(shape.sizes(), kMax ? -infinity : infinity, x.options());
  }
  if (x.scalar_type() == at::kBool) return at::full(shape.sizes(), !kMax, x.options());
  fail(ErrorKind::BadData, "integers over an empty axis have no {}", kMax ? "maximum" : "minimum");
}

at::Tensor l1(const at::Tensor& x, const Ints& axes, bool keep) {
  return sum(at::abs(x), axes, keep);
}
at::Tensor sum_square(const at::Tensor& x, const Ints& axes, bool keep) {
  return sum(at::mul(x, x), axes, keep);
}
at::Tensor l2(const at::Tensor& x, const Ints& axes, bool keep) {
  if (!at::isFloatingType(x.scalar_type())) {
    return l2(x.to(at::kDouble), axes, keep).to(x.scalar_type());
  }
  return at::sqrt(sum_square(x, axes, keep));
}
at::Tensor log_sum(const at::Tensor& x, const Ints& axes, bool keep) {
  return at::log(sum(x, axes, keep));
}
at::Tensor log_sum_exp(const at::Tensor& x, const Ints& axes, bool keep) {
  return at::logsumexp(x, axes, keep);
}

template <bool kMax>
Kernel make_arg(const OpContext& context) {
  const std::int64_t axis = context.node.get_int("axis", 0);
  const bool keep = context.node.get_int("keepdims", 1) != 0;
  const bool last = context.node.get_int("select_last_index", 0) != 0;
  return map_input([=](const at::Tensor& given) {
    const at::Tensor x = given.dim() == 0 ? given.unsqueeze(0) : given;
    const std::int64_t along = wrap_axis(axis, x.dim());
    const at::Tensor seen = last ? x.flip({along}) : x;
    const at::Tensor found = kMax ? at::argmax(seen, along, keep) : at::argmin(seen, along, keep);
    return last ? x.size(along) - 1 - found : found;
  });
}

Kernel make_top_k(const OpContext& context) {
  const std::int64_t axis = context.node.get_int("axis", -1);
  const bool largest = context.node.get_int("largest", 1) != 0;
  const std::int64_t fixed = context.node.get_int("k", 0);
  const bool from_input = context.opset >= 10;
  return [=](Call& call) {
    const at::Tensor& x = call.in(0);
    const std::int64_t along = wrap_axis(axis, x.dim());
    const std::int64_t k = from_input ? to_int(call.in(1)) : fixed;
    if (k < 0 || k > x.size(along)) {
      fail(ErrorKind::BadData, "k is {} but the axis has {} elements", k, x.size(along));
    }
    // Of equal elements the one with the lower index comes first: libtorch's topk does not promise
    // that, a stable sort does.
    const auto [values, indices] = at::sort(x, true, along, largest);
    call.set(0, values.narrow(along, 0, k).contiguous());
    call.set(1, indices.narrow(along, 0, k).contiguous());
  };
}

Kernel make_cum_sum(const OpContext& context) {
  const bool exclusive = context.node.get_int("exclusive", 0) != 0;
  const bool reverse = context.node.get_int("reverse", 0) != 0;
  return [=](Call& call) {
    const at::Tensor x = call.in(0);
    const std::int64_t axis = wrap_axis(to_int(call.in(1)), x.dim());
    const at::Tensor seen = reverse ? x.flip({axis}) : x;
    at::Tensor result = at::cumsum(seen, axis, x.scalar_type());
    if (exclusive) result = result - seen;
    call.set(0, reverse ? result.flip({axis}) : result);
  };
}

}  // namespace

KernelInfo kernel_ReduceSum() { return {.since = 1, .make = make_reduce<sum, 13>}; }
KernelInfo kernel_ReduceMean() { return reduce<mean>(); }
KernelInfo kernel_ReduceProd() { return reduce<prod>(); }
KernelInfo kernel_ReduceMax() { return reduce<extreme<true>>(); }
KernelInfo kernel_ReduceMin() { return reduce<extreme<false>>(); }
KernelInfo kernel_ReduceL1() { return reduce<l1>(); }
KernelInfo kernel_ReduceL2() { return reduce<l2>(); }
KernelInfo kernel_ReduceSumSquare() { return reduce<sum_square>(); }
KernelInfo kernel_ReduceLogSum() { return reduce<log_sum>(); }
KernelInfo kernel_ReduceLogSumExp() { return reduce<log_sum_exp>(); }
KernelInfo kernel_ArgMax() { return {.since = 1, .make = make_arg<true>}; }
KernelInfo kernel_ArgMin() { return {.since = 1, .make = make_arg<false>}; }
KernelInfo kernel_TopK() { return {.since = 1, .make = make_top_k}; }
KernelInfo kernel_CumSum() { return {.since = 11, .make = make_cum_sum}; }

}  // namespace quench::exec
