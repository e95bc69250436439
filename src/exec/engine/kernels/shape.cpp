// SPDX-License-Identifier: Apache-2.0
// Operators that only give elements another shape.
#include <algorithm>
#include <numeric>

#include "exec/engine/kernels/common.h"

namespace quench::exec {
namespace {

at::Tensor identity(const at::Tensor& x) { return x; }

at::Tensor from_ints(at::IntArrayRef values) {
  at::Tensor result = at::empty({static_cast<std::int64_t>(values.size())}, at::kLong);
  std::copy(values.begin(), values.end(), result.data_ptr<std::int64_t>());
  return result;
}

/// `start` and `end` (opset 15) are clamped, as slices are.
Kernel make_shape(const OpContext& context) {
  const std::int64_t start = context.node.get_int("start", 0);
  const std::int64_t* end = context.node.get<std::int64_t>("end");
  const std::int64_t stop = end == nullptr ? INT64_MAX : *end;
  return map_input([=](const at::Tensor& x) {
    const std::int64_t rank = x.dim();
    const auto clamped = [rank](std::int64_t at) {
      return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank);
    };
    const auto from = static_cast<std::size_t>(clamped(start));
    const auto to = static_cast<std::size_t>(std::max(clamped(start), clamped(stop)));
    return from_ints(x.sizes().slice(from, to - from));
  });
}

Kernel make_size(const OpContext&) {
  return map_input([](const at::Tensor& x) { return at::full({}, x.numel(), at::kLong); });
}

Ints resolve_shape(const at::Tensor& x, Ints shape, bool allow_zero) {
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != 0 || allow_zero) continue;
    if (static_cast<std::int64_t>(i) >= x.dim()) {
      fail(ErrorKind::BadData, "the new shape copies axis {} of an input of rank {}", i, x.dim());
    }
    shape[i] = x.size(static_cast<std::int64_t>(i));
  }
  const auto open = std::ranges::find(shape, -1);
  if (open != shape.end()) {
    *open = 1;
    const auto others = num_elements(shape);
    *open = others && *others != 0 ? x.numel() / *others : -1;
  }
  if (num_elements(shape) != x.numel()) {
    if (open != shape.end()) *open = -1;
    fail(ErrorKind::BadData, "an input of shape {} cannot be given the shape {}",
         to_string(x.sizes().vec()), to_string(shape));
  }
  return shape;
}

/// `x.reshape(shape)`; a dense tensor is only seen otherwise, without libtorch's dispatcher (1 us).
at::Tensor reshaped(const at::Tensor& x, at::IntArrayRef shape) {
  const bool same = std::accumulate(shape.begin(), shape.end(), std::int64_t{1},
                                    std::multiplies<>()) == x.numel();
  if (!same || !x.is_contiguous() || !x.is_inference()) return x.reshape(shape);
  auto view = c10::make_intrusive<c10::TensorImpl>(c10::TensorImpl::VIEW, c10::Storage(x.storage()),
                                                   x.key_set(), x.dtype());
  view->set_storage_offset(x.storage_offset());
  view->set_sizes_contiguous(shape);
  return at::Tensor(std::move(view));
}

Kernel make_reshape(const OpContext& context) {
  const bool allow_zero = context.node.get_int("allowzero", 0) != 0;
  const IntsSource shape(context, "shape", 1, 5);
  return [=](Call& call) {
    const at::Tensor& x = call.in(0);
    call.set(0, reshaped(x, resolve_shape(x, shape.get(call).value_or(Ints()), allow_zero)));
  };
}

Kernel make_flatten(const OpContext& context) {
  return map_input([axis = context.node.get_int("axis", 1)](const at::Tensor& x) {
    const std::int64_t split = axis == x.dim() ? axis : wrap_axis(axis, x.dim());
    const auto sizes = x.sizes().slice(0, static_cast<std::size_t>(split));
    const std::int64_t rows =
        std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
    return reshaped(x, {rows, rows == 0 ? 0 : x.numel() / rows});
  });
}

Kernel make_squeeze(const OpContext& context) {
  const IntsSource source(context, "axes", 1, 13);
  return [source](Call& call) {
    const at::Tensor& x = call.in(0);
    const auto axes = source.get(call);
    if (!axes) return call.set(0, x.squeeze());
    const Ints wrapped = wrap_axes(*axes, x.dim());
    Ints shape;
    for (std::int64_t i = 0; i < x.dim(); ++i) {
      if (std::ranges::find(wrapped, i) == wrapped.end()) {
        shape.push_back(x.size(i));
      } else if (x.size(i) != 1) {
        fail(ErrorKind::BadData, "axis {} has {} elements and cannot be squeezed", i, x.size(i));
      }
    }
    call.set(0, reshaped(x, shape));
  };
}

Kernel make_unsqueeze(const OpContext& context) {
  const IntsSource source(context, "axes", 1, 13);
  return [source](Call& call) {
    at::Tensor x = call.in(0);
    const Ints given = source.get(call).value_or(Ints());
    Ints axes = wrap_axes(given, x.dim() + static_cast<std::int64_t>(given.size()));
    std::ranges::sort(axes);
    for (const std::int64_t axis : axes) x = x.unsqueeze(axis);
    call.set(0, std::move(x));
  };
}

/// A view: whoever needs another order in memory makes it, and most readers do not.
Kernel make_transpose(const OpContext& context) {
  return map_input([perm = context.node.get_ints("perm")](const at::Tensor& x) {
    if (!perm.empty()) return x.permute(perm);
    Ints reversed(static_cast<std::size_t>(x.dim()));
    std::iota(reversed.rbegin(), reversed.rend(), 0);
    return x.permute(reversed);
  });
}

Kernel make_expand(const OpContext&) {
  return [](Call& call) {
    const at::Tensor& x = call.in(0);
    // Both ways: an axis of size 1 in the wanted shape keeps the input's.
    const at::Tensor other = at::empty({}, x.options()).expand(to_ints(call.in(1)));
    call.set(0, at::broadcast_tensors({x, other})[0]);
  };
}

Kernel make_dropout(const OpContext& context) {
  if (context.opset < 7 && context.node.get_int("is_test", 0) == 0) {
    return refuse("dropout in training mode is not supported");
  }
  if (context.has_input(2)) {
    const at::Tensor training = context.constant(2);
    if (!training.defined() || training.numel() != 1 || training.item<bool>()) {
      return refuse("dropout in training mode is not supported");
    }
  }
  return [](Call& call) {
    const at::Tensor& x = call.in(0);
    if (call.wants(1)) call.set(1, at::ones_like(x, at::kBool));
    call.set(0, x);
  };
}

}  // namespace

KernelInfo kernel_Identity() { return unary<identity>(1, true); }
KernelInfo kernel_Shape() { return {.since = 1, .make = make_shape, .any_float = true}; }
KernelInfo kernel_Size() { return {.since = 1, .make = make_size, .any_float = true}; }
KernelInfo kernel_Reshape() { return {.since = 1, .make = make_reshape, .any_float = true}; }
KernelInfo kernel_Flatten() { return {.since = 1, .make = make_flatten, .any_float = true}; }
KernelInfo kernel_Squeeze() { return {.since = 1, .make = make_squeeze, .any_float = true}; }
KernelInfo kernel_Unsqueeze() { return {.since = 1, .make = make_unsqueeze, .any_float = true}; }
KernelInfo kernel_Transpose() { return {.since = 1, .make = make_transpose, .any_float = true}; }
KernelInfo kernel_Expand() { return {.since = 8, .make = make_expand, .any_float = true}; }
KernelInfo kernel_Dropout() { return {.since = 1, .make = make_dropout, .any_float = true}; }

}  // namespace quench::exec
