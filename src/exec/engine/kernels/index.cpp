// SPDX-License-Identifier: Apache-2.0
// Gather and scatter in all their forms, and operators whose result is indices.
#include <algorithm>
#include <array>

#include "exec/engine/kernels/common.h"

namespace quench::exec {
namespace {

Kernel make_gather(const OpContext& context) {
  const std::int64_t axis = context.node.get_int("axis", 0);
  return [axis](Call& call) {
    const at::Tensor& x = call.in(0);
    const std::int64_t along = wrap_axis(axis, x.dim());
    const at::Tensor indices = wrap_indices(call.in(1), x.size(along));
    if (indices.dim() == 0) return call.set(0, x.select(along, indices.item<std::int64_t>()));
    at::Tensor result = x.index_select(along, indices.reshape({-1}).to(x.device()));
    if (indices.dim() != 1) {
      Ints shape = x.sizes().vec();
      const auto place = shape.erase(shape.begin() + along);
      shape.insert(place, indices.sizes().begin(), indices.sizes().end());
      result = result.reshape(shape);
    }
    call.set(0, std::move(result));
  };
}

Kernel make_gather_elements(const OpContext& context) {
  const std::int64_t axis = context.node.get_int("axis", 0);
  return [axis](Call& call) {
    const at::Tensor& x = call.in(0);
    const std::int64_t along = wrap_axis(axis, x.dim());
    call.set(0, at::gather(x, along, wrap_indices(call.in(1), x.size(along)).to(x.device())));
  };
}

/// Rows of index tuples into the leading axes of `shape`, as positions in row-major order.
at::Tensor linear_positions(const at::Tensor& tuples, at::IntArrayRef shape) {
  at::Tensor result = at::zeros(tuples.sizes().slice(0, tuples.sizes().size() - 1), at::kLong);
  for (std::int64_t i = 0; i < tuples.size(-1); ++i) {
    const std::int64_t size = shape[static_cast<std::size_t>(i)];
    result = result * size + wrap_indices(tuples.select(-1, i), size);
  }
  return result;
}

std::int64_t product(at::IntArrayRef sizes) {
  std::int64_t result = 1;
  for (const std::int64_t size : sizes) result *= size;
  return result;
}

void check_tuples(const at::Tensor& x, const at::Tensor& tuples, std::int64_t batch) {
  if (tuples.dim() == 0 || batch + tuples.size(-1) > x.dim()) {
    fail(ErrorKind::BadData, "indices of shape {} do not fit data of shape {}",
         to_string(std::span(tuples.sizes().data(), tuples.sizes().size())),
         to_string(std::span(x.sizes().data(), x.sizes().size())));
  }
}

Kernel make_gather_nd(const OpContext& context) {
  const std::int64_t batch = context.node.get_int("batch_dims", 0);
  if (batch < 0) return refuse("batch_dims must not be negative, it is {}", batch);
  return [batch](Call& call) {
    const at::Tensor& x = call.in(0);
    const at::Tensor& tuples = call.in(1);
    check_tuples(x, tuples, batch);
    const auto lead = static_cast<std::size_t>(batch);
    const auto depth = static_cast<std::size_t>(tuples.size(-1));
    const at::IntArrayRef inner = x.sizes().slice(lead, depth);
    const at::IntArrayRef rest = x.sizes().slice(lead + depth);
    const std::int64_t batches = product(x.sizes().slice(0, lead));
    const at::Tensor positions = linear_positions(tuples, inner).reshape({batches, -1});
    const at::Tensor offsets = at::arange(batches, at::kLong).unsqueeze(1) * product(inner);
    const at::Tensor rows = x.reshape({batches * product(inner), product(rest)});
    Ints shape = tuples.sizes().slice(0, tuples.sizes().size() - 1).vec();
    shape.insert(shape.end(), rest.begin(), rest.end());
    call.set(0, rows.index_select(0, (positions + offsets).reshape({-1})).reshape(shape));
  };
}

enum class Reduction { None, Add, Mul, Max, Min };

std::optional<Reduction> reduction(const OpContext& context) {
  constexpr std::array kNames = {"none", "add", "mul", "max", "min"};
  const auto found = std::ranges::find(kNames, context.node.get_string("reduction", "none"));
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Reduction>(found - kNames.begin());
}

template <typename T>
T reduced(T a, T b, Reduction how) {
  switch (how) {
    case Reduction::Add:
      return static_cast<T>(a + b);
    case Reduction::Mul:
      return static_cast<T>(a * b);
    case Reduction::Max:
      return std::max(a, b);
    case Reduction::Min:
      return std::min(a, b);
    case Reduction::None:
      break;
  }
  return b;
}

/// Writes updates to places of the flattened tensor, in order: of equal places the last one wins.
at::Tensor scatter_flat(const at::Tensor& x, const at::Tensor& places, const at::Tensor& updates,
                        Reduction how) {
  at::Tensor result = x.clone(at::MemoryFormat::Contiguous);
  const at::Tensor where = places.contiguous();
  const at::Tensor what = updates.contiguous();
  if (where.numel() != what.numel()) {
    fail(ErrorKind::BadData, "{} updates are given for {} places", what.numel(), where.numel());
  }
  const auto* at = where.data_ptr<std::int64_t>();
  AT_DISPATCH_ALL_TYPES_AND3(at::kBool, at::kHalf, at::kBFloat16, x.scalar_type(), "scatter", [&] {
    auto* out = result.data_ptr<scalar_t>();
    const auto* from = what.data_ptr<scalar_t>();
    for (std::int64_t i = 0; i < what.numel(); ++i) out[at[i]] = reduced(out[at[i]], from[i], how);
  });
  return result;
}

at::Tensor all_places(const at::Tensor& x) {
  return at::arange(x.numel(), at::kLong).reshape(x.sizes());
}

Kernel make_scatter_elements(const OpContext& context) {
  const std::int64_t axis = context.node.get_int("axis", 0);
  const auto how = reduction(context);
  if (!how) return refuse("reduction '{}' is not known", context.node.get_string("reduction", ""));
  return [=](Call& call) {
    const at::Tensor& x = call.in(0);
    const std::int64_t along = wrap_axis(axis, x.dim());
    const at::Tensor indices = wrap_indices(call.in(1), x.size(along));
    if (*how == Reduction::None) {
      return call.set(0, at::scatter(x, along, indices, call.in(2)));
    }
    call.set(0, scatter_flat(x, at::gather(all_places(x), along, indices), call.in(2), *how));
  };
}

Kernel make_scatter_nd(const OpContext& context) {
  const auto how = reduction(context);
  if (!how) return refuse("reduction '{}' is not known", context.node.get_string("reduction", ""));
  return [how](Call& call) {
    const at::Tensor& x = call.in(0);
    const at::Tensor& tuples = call.in(1);
    check_tuples(x, tuples, 0);
    const auto depth = static_cast<std::size_t>(tuples.size(-1));
    const at::IntArrayRef outer = x.sizes().slice(0, depth);
    const std::int64_t width = product(x.sizes().slice(depth));
    const at::Tensor rows = linear_positions(tuples, outer).reshape({-1, 1});
    const at::Tensor places = rows * width + at::arange(width, at::kLong);
    call.set(0, scatter_flat(x, places, call.in(2), *how));
  };
}

Kernel make_compress(const OpContext& context) {
  const std::int64_t* axis = context.node.get<std::int64_t>("axis");
  const auto along = axis == nullptr ? std::nullopt : std::optional(*axis);
  return [along](Call& call) {
    const at::Tensor x = along ? call.in(0) : call.in(0).reshape({-1});
    const at::Tensor chosen = at::nonzero(call.in(1)).reshape({-1});
    call.set(0, x.index_select(along ? wrap_axis(*along, x.dim()) : 0, chosen));
  };
}

at::Tensor non_zero(const at::Tensor& x) { return at::nonzero(x).t(); }

/// Where each of `count` values stands for the first time.
at::Tensor first_places(const at::Tensor& inverse, std::int64_t count) {
  at::Tensor first = at::empty({count}, at::kLong);
  const Ints values = to_ints(inverse);
  for (std::size_t i = values.size(); i-- > 0;) {
    first.data_ptr<std::int64_t>()[values[i]] = static_cast<std::int64_t>(i);
  }
  return first;
}

Kernel make_unique(const OpContext& context) {
  const std::int64_t* axis = context.node.get<std::int64_t>("axis");
  const auto along = axis == nullptr ? std::nullopt : std::optional(*axis);
  const bool sorted = context.node.get_int("sorted", 1) != 0;
  return [=](Call& call) {
    const at::Tensor x = along ? call.in(0) : call.in(0).reshape({-1});
    const std::int64_t dim = along ? wrap_axis(*along, x.dim()) : 0;
    auto [values, inverse, counts] = at::unique_dim(x, dim, true, true, true);
    at::Tensor first = first_places(inverse, counts.numel());
    if (!sorted) {
      const at::Tensor order = at::argsort(first);
      values = values.index_select(dim, order);
      inverse = at::argsort(order).index_select(0, inverse);
      counts = counts.index_select(0, order);
      first = first.index_select(0, order);
    }
    call.set(0, values);
    call.set(1, first);
    call.set(2, inverse);
    call.set(3, counts);
  };
}

}  // namespace

KernelInfo kernel_Gather() { return {.since = 1, .make = make_gather, .any_float = true}; }
KernelInfo kernel_GatherElements() {
  return {.since = 11, .make = make_gather_elements, .any_float = true};
}
KernelInfo kernel_GatherND() { return {.since = 11, .make = make_gather_nd, .any_float = true}; }
KernelInfo kernel_Scatter() {
  return {.since = 9, .make = make_scatter_elements, .any_float = true};
}
KernelInfo kernel_ScatterElements() {
  return {.since = 11, .make = make_scatter_elements, .any_float = true};
}
KernelInfo kernel_ScatterND() { return {.since = 11, .make = make_scatter_nd, .any_float = true}; }
KernelInfo kernel_Compress() { return {.since = 9, .make = make_compress, .any_float = true}; }
KernelInfo kernel_NonZero() { return unary<non_zero>(9); }
KernelInfo kernel_Unique() { return {.since = 11, .make = make_unique}; }

}  // namespace quench::exec
