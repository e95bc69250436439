// SPDX-License-Identifier: Apache-2.0
// Pad: constants by libtorch, the other modes by choosing which element stands at each place.
#include <algorithm>

#include "exec/engine/kernels/common.h"

namespace quench::exec {
namespace {

enum class PadMode { Constant, Reflect, Edge, Wrap };

std::optional<PadMode> pad_mode(const std::string& name) {
  if (name == "constant") return PadMode::Constant;
  if (name == "reflect") return PadMode::Reflect;
  if (name == "edge") return PadMode::Edge;
  if (name == "wrap") return PadMode::Wrap;
  return std::nullopt;
}

std::int64_t modulo(std::int64_t value, std::int64_t divisor) {
  return ((value % divisor) + divisor) % divisor;
}

/// The element of an axis of `size` elements that stands at `place`, which may lie outside.
std::int64_t element_at(std::int64_t place, std::int64_t size, PadMode mode) {
  if (mode == PadMode::Edge) return std::clamp<std::int64_t>(place, 0, size - 1);
  if (mode == PadMode::Wrap) return modulo(place, size);
  if (size == 1) return 0;
  const std::int64_t period = 2 * (size - 1);
  const std::int64_t folded = modulo(place, period);
  return folded < size ? folded : period - folded;
}

at::Tensor pad_axis(const at::Tensor& x, std::int64_t axis, std::int64_t before, std::int64_t after,
                    PadMode mode) {
  const std::int64_t size = x.size(axis);
  const std::int64_t length = size + before + after;
  if (length < 0 || (size == 0 && length > 0)) {
    fail(ErrorKind::BadData, "cannot pad an axis of {} elements by {} and {}", size, before, after);
  }
  at::Tensor places = at::empty({length}, at::kLong);
  auto* out = places.data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < length; ++i) out[i] = element_at(i - before, size, mode);
  return x.index_select(axis, places.to(x.device()));
}

/// Pads for every axis, begins then ends, from those of the given axes.
Ints all_pads(const Ints& pads, const std::optional<Ints>& axes, std::int64_t rank) {
  const auto count = static_cast<std::size_t>(rank);
  const std::size_t given = axes ? axes->size() : count;
  if (pads.size() != 2 * given) {
    fail(ErrorKind::BadData, "{} pads are given for {} axes", pads.size(), given);
  }
  if (!axes) return pads;
  Ints result(2 * count, 0);
  for (std::size_t i = 0; i < given; ++i) {
    const auto axis = static_cast<std::size_t>(wrap_axis((*axes)[i], rank));
    result[axis] = pads[i];
    result[count + axis] = pads[given + i];
  }
  return result;
}

Kernel make_pad(const OpContext& context) {
  const auto mode = pad_mode(context.node.get_string("mode", "constant"));
  if (!mode) return refuse("mode '{}' is not known", context.node.get_string("mode", ""));
  const IntsSource source(context, "pads", 1, 11);
  const float value = context.node.get_float("value", 0.0F);
  const bool value_input = context.opset >= 11;
  return [=](Call& call) {
    at::Tensor x = call.in(0);
    const std::optional<Ints> axes =
        call.has(3) ? std::optional(to_ints(call.in(3))) : std::nullopt;
    const Ints pads = all_pads(source.get(call).value_or(Ints()), axes, x.dim());
    if (*mode == PadMode::Constant) {
      at::Scalar fill = value;
      if (value_input) fill = call.has(2) && call.in(2).numel() > 0 ? call.in(2).item() : 0;
      return call.set(0, at::constant_pad_nd(x, torch_pads(pads), fill));
    }
    const auto rank = static_cast<std::size_t>(x.dim());
    for (std::size_t i = 0; i < rank; ++i) {
      if (pads[i] == 0 && pads[rank + i] == 0) continue;
      x = pad_axis(x, static_cast<std::int64_t>(i), pads[i], pads[rank + i], *mode);
    }
    call.set(0, std::move(x));
  };
}

}  // namespace

KernelInfo kernel_Pad() { return {.since = 2, .make = make_pad, .any_float = true}; }

}  // namespace quench::exec
