// SPDX-License-Identifier: Apache-2.0
// Pools: windows over the spatial axes, or over all of them.
#include "exec/engine/kernels/pool.h"

#include <algorithm>
#include <limits>

#include "exec/engine/kernels/pool_nhwc.h"

namespace quench::exec {
Ints ceil_extra(const Pool& pool, at::IntArrayRef spatial, const Ints& pads) {
  Ints extra(pool.rank, 0);
  const Window& window = pool.window;
  for (std::size_t i = 0; pool.ceil && i < pool.rank; ++i) {
    const std::int64_t length = spatial[i] + pads[i] + pads[pool.rank + i];
    const std::int64_t room = length - ((window.kernel[i] - 1) * window.dilations[i] + 1);
    std::int64_t steps = (room + window.strides[i] - 1) / window.strides[i];
    // A window that would start in the end pad does not count.
    if (steps * window.strides[i] >= spatial[i] + pads[i]) --steps;
    extra[i] = std::max<std::int64_t>(steps * window.strides[i] - room, 0);
  }
  return extra;
}

Ints with_extra(const Ints& pads, const Ints& extra) {
  Ints result = pads;
  for (std::size_t i = 0; i < extra.size(); ++i) result[extra.size() + i] += extra[i];
  return result;
}

namespace {

void lift(Pool& pool) {
  if (pool.rank != 1) return;
  Window& window = pool.window;
  for (Ints* values : {&window.kernel, &window.strides, &window.dilations}) {
    values->insert(values->begin(), 1);
  }
  window.pads = {0, window.pads[0], 0, window.pads[1]};
  pool.rank = 2;
  pool.lifted = true;
}

std::optional<Pool> pool_attributes(const OpContext& context, std::string& refusal) {
  const Node& node = context.node;
  const std::size_t rank = node.get_ints("kernel_shape").size();
  Pool pool{.window = Window(node, rank), .rank = rank};
  const Window& window = pool.window;
  const auto positive = [](std::int64_t value) { return value > 0; };
  if (rank < 1 || rank > 3) {
    refusal = format("kernel_shape has {} axes; 1 to 3 are supported", rank);
  } else if (window.strides.size() != rank || window.dilations.size() != rank ||
             window.pads.size() != 2 * rank) {
    refusal = "strides, dilations or pads do not fit kernel_shape";
  } else if (!std::ranges::all_of(window.kernel, positive) ||
             !std::ranges::all_of(window.strides, positive) ||
             !std::ranges::all_of(window.dilations, positive)) {
    refusal = "kernel_shape, strides and dilations must be positive";
  } else if (std::ranges::any_of(window.pads, [](std::int64_t pad) { return pad < 0; })) {
    refusal = "negative pads are not supported";
  }
  if (!refusal.empty()) return std::nullopt;
  pool.ceil = node.get_int("ceil_mode", 0) != 0;
  pool.count_pads = node.get_int("count_include_pad", 0) != 0;
  pool.column_major = node.get_int("storage_order", 0) != 0;
  pool.p = node.get_int("p", 2);
  lift(pool);
  return pool;
}

at::Tensor lifted(const at::Tensor& x, const Pool& pool) {
  if (x.dim() != static_cast<std::int64_t>(pool.rank) + 2 - (pool.lifted ? 1 : 0)) {
    fail(ErrorKind::BadData, "a pool over {} axes got an input of rank {}",
         pool.rank - (pool.lifted ? 1 : 0), x.dim());
  }
  return pool.lifted ? x.unsqueeze(2) : x;
}

at::Tensor lowered(const at::Tensor& x, const Pool& pool) { return pool.lifted ? x.squeeze(2) : x; }

/// Whether libtorch takes these pads as they are: equal on both sides, at most half the kernel.
bool native_pads(const Pool& pool, const Ints& pads) {
  if (!symmetric(pads)) return false;
  for (std::size_t i = 0; i < pool.rank; ++i) {
    if (2 * pads[i] > pool.window.kernel[i]) return false;
  }
  return true;
}

at::Tensor max_pool(const at::Tensor& x, const Pool& pool, const Ints& pads, bool ceil) {
  const Window& w = pool.window;
  return pool.rank == 2 ? at::max_pool2d(x, w.kernel, w.strides, pads, w.dilations, ceil)
                        : at::max_pool3d(x, w.kernel, w.strides, pads, w.dilations, ceil);
}

/// libtorch counts within the padded plane; ONNX within the whole tensor without pads.
at::Tensor onnx_indices(const at::Tensor& found, const at::Tensor& x, const Ints& pads,
                        at::IntArrayRef padded, bool column_major) {
  const std::size_t rank = pads.size() / 2;
  at::Tensor rest = found;
  at::Tensor result = at::zeros_like(found);
  std::int64_t plane = 1;
  std::int64_t column_stride = 1;
  std::vector<at::Tensor> places(rank);
  for (std::size_t i = rank; i-- > 0;) {
    const std::int64_t size = padded[2 + i];
    places[i] = at::remainder(rest, size) - pads[i];
    rest = at::div(rest, size, "floor");
  }
  for (std::size_t k = 0; k < rank; ++k) {
    const std::size_t row_axis = rank - 1 - k;
    const std::size_t axis = column_major ? k : row_axis;
    result += places[axis] * column_stride;
    column_stride *= x.size(2 + static_cast<std::int64_t>(axis));
  }
  plane = column_stride;
  Ints shape(rank + 2, 1);
  shape[0] = x.size(0);
  shape[1] = x.size(1);
  return result + at::arange(x.size(0) * x.size(1), found.options()).mul_(plane).reshape(shape);
}

void run_max_pool(Call& call, const Pool& pool) {
  const at::Tensor& given = call.in(0);
  const bool integers = !at::isFloatingType(given.scalar_type());
  const at::Tensor x = lifted(integers ? given.to(at::kFloat) : given, pool);
  const Ints pads = pool.window.pads_for(x.sizes().slice(2), pool.window.kernel);
  const Ints zeros(pool.rank, 0);
  if (!call.wants(1) && native_pads(pool, pads)) {
    const at::Tensor result = lowered(max_pool(x, pool, begins(pads), pool.ceil), pool);
    return call.set(0, integers ? result.to(given.scalar_type()) : result);
  }
  const Ints grown = with_extra(pads, ceil_extra(pool, x.sizes().slice(2), pads));
  const double low = -std::numeric_limits<double>::infinity();
  const at::Tensor padded = at::constant_pad_nd(x, torch_pads(grown), low);
  const Window& w = pool.window;
  const auto [values, found] =
      pool.rank == 2 ? at::max_pool2d_with_indices(padded, w.kernel, w.strides, zeros, w.dilations)
                     : at::max_pool3d_with_indices(padded, w.kernel, w.strides, zeros, w.dilations);
  const at::Tensor result = lowered(values, pool);
  call.set(0, integers ? result.to(given.scalar_type()) : result);
  if (!call.wants(1)) return;
  call.set(1, lowered(onnx_indices(found, x, pads, padded.sizes(), pool.column_major), pool));
}

Kernel make_max_pool(const OpContext& context) {
  std::string refusal;
  const auto pool = pool_attributes(context, refusal);
  if (!pool) return Kernel::Refusal{refusal};
  const auto fast = context.fast ? make_fast_pool(*pool, PoolKind::Max) : FastPoolFunction();
  return [pool = *pool, fast](Call& call) {
    const auto done = fast && !call.wants(1) ? fast(call.in(0)) : std::nullopt;
    if (done) return call.set(0, *done);
    run_max_pool(call, pool);
  };
}

at::Tensor mean_pool(const at::Tensor& x, const Pool& pool, const Ints& pads, bool ceil,
                     bool count_pads) {
  const Window& w = pool.window;
  return pool.rank == 2 ? at::avg_pool2d(x, w.kernel, w.strides, pads, ceil, count_pads)
                        : at::avg_pool3d(x, w.kernel, w.strides, pads, ceil, count_pads);
}

at::Tensor average_pool(const at::Tensor& given, const Pool& pool) {
  const at::Tensor x = lifted(given, pool);
  const Ints pads = pool.window.pads_for(x.sizes().slice(2), pool.window.kernel);
  const Ints zeros(pool.rank, 0);
  if (native_pads(pool, pads)) {
    return lowered(mean_pool(x, pool, begins(pads), pool.ceil, pool.count_pads), pool);
  }
  // The mean over all of the window, divided by the share of it that counts.
  const Ints extra = ceil_extra(pool, x.sizes().slice(2), pads);
  const Ints grown = with_extra(pads, extra);
  Ints one = x.sizes().vec();
  one[0] = one[1] = 1;
  at::Tensor counted = at::ones(one, x.options());
  if (pool.count_pads) {
    counted = at::constant_pad_nd(counted, torch_pads(pads), 1);
    counted = at::constant_pad_nd(counted, torch_pads(with_extra(Ints(pads.size(), 0), extra)), 0);
  } else {
    counted = at::constant_pad_nd(counted, torch_pads(grown), 0);
  }
  const at::Tensor padded = at::constant_pad_nd(x, torch_pads(grown), 0);
  const at::Tensor share = mean_pool(counted, pool, zeros, false, true);
  return lowered(mean_pool(padded, pool, zeros, false, true) / share, pool);
}

Kernel make_average_pool(const OpContext& context) {
  std::string refusal;
  const auto pool = pool_attributes(context, refusal);
  if (!pool) return Kernel::Refusal{refusal};
  const Ints& dilations = pool->window.dilations;
  if (std::ranges::any_of(dilations, [](std::int64_t value) { return value != 1; })) {
    return refuse("dilations other than 1 are not supported");
  }
  const auto fast = context.fast ? make_fast_pool(*pool, PoolKind::Average) : FastPoolFunction();
  return map_input([pool = *pool, fast](const at::Tensor& x) {
    const auto done = fast ? fast(x) : std::nullopt;
    return done ? *done : average_pool(x, pool);
  });
}

Kernel make_lp_pool(const OpContext& context) {
  std::string refusal;
  auto pool = pool_attributes(context, refusal);
  if (!pool) return Kernel::Refusal{refusal};
  const Ints& dilations = pool->window.dilations;
  if (std::ranges::any_of(dilations, [](std::int64_t value) { return value != 1; })) {
    return refuse("dilations other than 1 are not supported");
  }
  pool->count_pads = true;
  std::int64_t elements = 1;
  for (const std::int64_t size : pool->window.kernel) elements *= size;
  return map_input([pool = *pool, elements](const at::Tensor& x) {
    const at::Tensor powers = at::pow(at::abs(x), pool.p);
    return at::pow(average_pool(powers, pool) * elements, 1.0 / static_cast<double>(pool.p));
  });
}

Ints spatial_axes(const at::Tensor& x) {
  Ints axes;
  for (std::int64_t i = 2; i < x.dim(); ++i) axes.push_back(i);
  return axes;
}

at::Tensor global_average(const at::Tensor& x) {
  return x.dim() < 3 ? x : at::mean(x, spatial_axes(x), true);
}

Kernel make_global_average(const OpContext& context) {
  return map_input([fast = context.fast](const at::Tensor& x) {
    const bool nhwc = fast && !x.is_contiguous() && is_nhwc_float(x);
    return nhwc ? global_average_nhwc(x) : global_average(x);
  });
}

at::Tensor global_max(const at::Tensor& x) {
  return x.dim() < 3 ? x : at::amax(x, spatial_axes(x), true);
}

Kernel make_global_lp(const OpContext& context) {
  return map_input([p = context.node.get_int("p", 2)](const at::Tensor& x) {
    return at::pow(at::sum(at::pow(at::abs(x), p), spatial_axes(x), true),
                   1.0 / static_cast<double>(p));
  });
}

Kernel make_max_unpool(const OpContext& context) {
  std::string refusal;
  const auto pool = pool_attributes(context, refusal);
  if (!pool) return Kernel::Refusal{refusal};
  if (pool->lifted) return refuse("one spatial axis is not supported");
  return [pool = *pool](Call& call) {
    const at::Tensor x = lifted(call.in(0), pool);
    const Window& w = pool.window;
    Ints shape = x.sizes().vec();
    Ints grow(2 * pool.rank, 0);
    for (std::size_t i = 0; i < pool.rank; ++i) {
      shape[2 + i] =
          (shape[2 + i] - 1) * w.strides[i] + w.kernel[i] - w.pads[i] - w.pads[pool.rank + i];
    }
    const at::Tensor result = at::zeros(shape, x.options());
    result.view({-1}).scatter_(0, wrap_indices(call.in(1), result.numel()).reshape({-1}),
                               x.reshape({-1}));
    if (!call.has(2)) return call.set(0, result);
    const Ints wanted = to_ints(call.in(2));
    if (wanted.size() < pool.rank) {
      fail(ErrorKind::BadData, "output_shape has {} sizes", wanted.size());
    }
    for (std::size_t i = 0; i < pool.rank; ++i) {
      grow[pool.rank + i] = wanted[wanted.size() - pool.rank + i] - shape[2 + i];
    }
    call.set(0, at::constant_pad_nd(result, torch_pads(grow), 0));
  };
}

}  // namespace

KernelInfo kernel_MaxPool() { return {.since = 1, .make = make_max_pool}; }
KernelInfo kernel_AveragePool() { return {.since = 1, .make = make_average_pool}; }
KernelInfo kernel_LpPool() { return {.since = 2, .make = make_lp_pool}; }
KernelInfo kernel_GlobalAveragePool() { return {.make = make_global_average}; }
KernelInfo kernel_GlobalMaxPool() { return unary<global_max>(1); }
KernelInfo kernel_GlobalLpPool() { return {.since = 2, .make = make_global_lp}; }
KernelInfo kernel_MaxUnpool() { return {.since = 9, .make = make_max_unpool}; }

}  // namespace quench::exec
