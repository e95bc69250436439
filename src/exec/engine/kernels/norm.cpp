// SPDX-License-Identifier: Apache-2.0
// Normalisations.
#include "exec/engine/int8/bytes.h"
#include "exec/engine/kernels/common.h"
#include "exec/engine/kernels/rows.h"
#include "exec/engine/parallel.h"

namespace quench::exec {
namespace {

at::Tensor per_channel(const at::Tensor& vector, const at::Tensor& x) {
  return x.dim() < 2 ? vector : along_axis(vector.reshape({-1}), 1, x.dim());
}

/// Normalises with the batch's own statistics and moves the running ones towards them.
void train_batch_norm(Call& call, float epsilon, float momentum) {
  const at::Tensor& x = call.in(0);
  Ints axes = {0};
  for (std::int64_t i = 2; i < x.dim(); ++i) axes.push_back(i);
  const at::Tensor mean = at::mean(x, axes);
  const at::Tensor variance = at::var(x, axes, false);
  const at::Tensor scale = call.in(1) * at::rsqrt(variance + epsilon);
  call.set(0, (x - per_channel(mean, x)) * per_channel(scale, x) + per_channel(call.in(2), x));
  call.set(1, call.in(3) * momentum + mean * (1 - momentum));
  call.set(2, call.in(4) * momentum + variance * (1 - momentum));
  // Before opset 14: the batch's own statistics, as ONNX Runtime gives them.
  call.set(3, mean);
  call.set(4, at::rsqrt(variance + epsilon));
}

Kernel make_batch_norm(const OpContext& context) {
  const float epsilon = context.node.get_float("epsilon", 1e-5F);
  const float momentum = context.node.get_float("momentum", 0.9F);
  // Between is_test and training_mode further outputs asked for it.
  const bool asked = context.opset >= 7 && context.opset < 14 && context.node.outputs.size() > 1;
  const bool training = asked || context.node.get_int("training_mode", 0) != 0;
  if (context.opset < 9 && context.node.get_int("spatial", 1) == 0) {
    return refuse("spatial=0 is not supported");
  }
  if (context.opset < 7 && context.node.get_int("is_test", 0) == 0) {
    return refuse("batch normalisation in training mode is supported since opset 7");
  }
  if (training) return [=](Call& call) { train_batch_norm(call, epsilon, momentum); };
  return [epsilon](Call& call) {
    call.set(0, at::batch_norm(call.in(0), call.in(1), call.in(2), call.in(3), call.in(4), false, 0,
                               epsilon, false));
  };
}

/// With channels last, libtorch's group_norm takes variances from sums of squares, and little is
/// left of small ones beside large means.
at::Tensor in_rows(const at::Tensor& x) { return x.contiguous(); }

Kernel make_instance_norm(const OpContext& context) {
  return [epsilon = context.node.get_float("epsilon", 1e-5F)](Call& call) {
    const at::Tensor& x = call.in(0);
    if (x.numel() == 0) return call.set(0, x);
    // One group a channel: libtorch's instance_norm refuses a single element, this does not.
    call.set(0, at::group_norm(in_rows(x), x.size(1), call.in(1), call.in(2), epsilon));
  };
}

Kernel make_group_norm(const OpContext& context) {
  const float epsilon = context.node.get_float("epsilon", 1e-5F);
  const std::int64_t groups = context.node.get_int("num_groups", 0);
  const bool by_group = context.opset < 21;
  if (groups <= 0) return refuse("num_groups must be positive, not {}", groups);
  return [=](Call& call) {
    const at::Tensor& x = call.in(0);
    at::Tensor scale = call.in(1);
    at::Tensor bias = call.in(2);
    if (by_group && scale.numel() != x.size(1)) {
      scale = scale.repeat_interleave(x.size(1) / groups);
      bias = bias.repeat_interleave(x.size(1) / groups);
    }
    call.set(0, at::group_norm(in_rows(x), groups, scale, bias, epsilon));
  };
}

/// Calls work(from, to) for every row, shared by all threads.
template <typename Work>
void for_rows(const at::Tensor& x, const at::Tensor& dst, const Work& work) {
  const std::int64_t columns = x.size(-1);
  const float* src = x.data_ptr<float>();
  float* to = dst.data_ptr<float>();
  constexpr std::int64_t kGrain = 1 << 14;
  share(0, x.numel() / columns, std::max<std::int64_t>(kGrain / columns, 1),
        [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t row = begin; row < end; ++row) {
            work(src + row * columns, to + row * columns);
          }
        });
}

/// Rows by our own loops.
at::Tensor norm_rows(const at::Tensor& given, const at::Tensor& scale, const at::Tensor& bias,
                     float epsilon) {
  const at::Tensor x = given.contiguous();
  at::Tensor dst = at::empty_like(x);
  if (x.numel() == 0) return dst;
  const std::int64_t columns = x.size(-1);
  const at::Tensor factors = scale.contiguous();
  const at::Tensor shifts = bias.defined() ? bias.contiguous() : bias;
  const RowNorm norm{.scale = factors.data_ptr<float>(),
                     .bias = shifts.defined() ? shifts.data_ptr<float>() : nullptr,
                     .epsilon = epsilon};
  for_rows(x, dst, [&](const float* src, float* to) { layer_norm_loop(src, norm, to, columns); });
  return dst;
}

/// One row a normalised group, all in float.
bool are_rows(const Call& call, std::size_t first) {
  const at::Tensor& x = call.in(0);
  const auto fits = [&](const at::Tensor& part) {
    return part.scalar_type() == at::kFloat && part.numel() == x.size(-1);
  };
  return first + 1 == static_cast<std::size_t>(x.dim()) && x.scalar_type() == at::kFloat &&
         !call.wants(1) && !call.wants(2) && fits(call.in(1)) && (!call.has(2) || fits(call.in(2)));
}

Kernel make_layer_norm(const OpContext& context) {
  const float epsilon = context.node.get_float("epsilon", 1e-5F);
  const std::int64_t axis = context.node.get_int("axis", -1);
  const bool fast = context.fast;
  Kernel kernel = [=](Call& call) {
    const at::Tensor& x = call.in(0);
    const auto first = static_cast<std::size_t>(wrap_axis(axis, x.dim()));
    if (fast && are_rows(call, first)) {
      return call.set(0, norm_rows(x, call.in(1), call.in(2), epsilon));
    }
    const at::IntArrayRef shape = x.sizes().slice(first);
    // Scale and bias may be smaller and broadcast: libtorch wants them whole.
    const at::Tensor scale = call.in(1).expand(shape);
    const at::Tensor bias = call.has(2) ? call.in(2).expand(shape) : at::Tensor();
    if (!call.wants(1) && !call.wants(2)) {
      return call.set(0, at::layer_norm(x, shape, scale, bias, epsilon));
    }
    auto [y, mean, deviation] = at::native_layer_norm(x, shape, scale, bias, epsilon);
    call.set(0, std::move(y));
    call.set(1, std::move(mean));
    call.set(2, std::move(deviation));
  };
  // Rows are; the rest is rare.
  kernel.shares = fast;
  return kernel;
}

Kernel make_rms_norm(const OpContext& context) {
  const float epsilon = context.node.get_float("epsilon", 1e-5F);
  const std::int64_t axis = context.node.get_int("axis", -1);
  return [=](Call& call) {
    const at::Tensor& x = call.in(0);
    Ints axes;
    for (std::int64_t i = wrap_axis(axis, x.dim()); i < x.dim(); ++i) axes.push_back(i);
    const at::Tensor scale = at::rsqrt(at::mean(x * x, axes, true) + epsilon);
    call.set(0, x * scale * call.in(1));
  };
}

at::Tensor lp_norm_rows(const at::Tensor& x, bool second) {
  at::Tensor dst = new_alike(x, at::kFloat);
  const std::int64_t columns = x.size(-1);
  for_rows(x, dst, [&](const float* src, float* to) { lp_norm_loop(src, second, to, columns); });
  return dst;
}

Kernel make_lp_norm(const OpContext& context) {
  const std::int64_t axis = context.node.get_int("axis", -1);
  const std::int64_t p = context.node.get_int("p", 2);
  if (p != 1 && p != 2) return refuse("p must be 1 or 2, not {}", p);
  return map_input([=, fast = context.fast](const at::Tensor& x) {
    if (fast && x.scalar_type() == at::kFloat && x.dim() > 0 && x.numel() > 0 &&
        wrap_axis(axis, x.dim()) == x.dim() - 1) {
      return lp_norm_rows(x.contiguous(), p == 2);
    }
    const at::Tensor length = at::norm(x, at::Scalar(p), {wrap_axis(axis, x.dim())}, true);
    return at::where(length == 0, at::zeros({}, x.options()), x / length);
  });
}

Kernel make_lrn(const OpContext& context) {
  const std::int64_t size = context.node.get_int("size", 0);
  const float alpha = context.node.get_float("alpha", 1e-4F);
  const float beta = context.node.get_float("beta", 0.75F);
  const float bias = context.node.get_float("bias", 1.0F);
  if (size <= 0) return refuse("size must be positive, not {}", size);
  return map_input([=](const at::Tensor& x) {
    const std::int64_t before = (size - 1) / 2;
    Ints pads(2 * static_cast<std::size_t>(x.dim() - 1), 0);
    pads[pads.size() - 2] = before;
    pads[pads.size() - 1] = size - 1 - before;
    const at::Tensor squares = at::constant_pad_nd(x * x, pads, 0);
    at::Tensor sum = squares.narrow(1, 0, x.size(1)).clone();
    for (std::int64_t i = 1; i < size; ++i) sum += squares.narrow(1, i, x.size(1));
    return x / at::pow(sum * (alpha / static_cast<float>(size)) + bias, beta);
  });
}

Kernel make_mean_variance(const OpContext& context) {
  Ints axes = context.node.get_ints("axes");
  if (axes.empty()) axes = {0, 2, 3};
  return map_input([axes](const at::Tensor& x) {
    const Ints along = wrap_axes(axes, x.dim());
    const at::Tensor centred = x - at::mean(x, along, true);
    return centred / (at::sqrt(at::mean(centred * centred, along, true)) + 1e-9);
  });
}

}  // namespace

KernelInfo kernel_BatchNormalization() { return {.since = 6, .make = make_batch_norm}; }
KernelInfo kernel_InstanceNormalization() { return {.since = 1, .make = make_instance_norm}; }
KernelInfo kernel_GroupNormalization() { return {.since = 18, .make = make_group_norm}; }
// Passes put this one into models of any opset.
KernelInfo kernel_LayerNormalization() { return {.make = make_layer_norm}; }
KernelInfo kernel_RMSNormalization() { return {.since = 23, .make = make_rms_norm}; }
KernelInfo kernel_LpNormalization() { return {.since = 1, .make = make_lp_norm}; }
KernelInfo kernel_LRN() { return {.since = 1, .make = make_lrn}; }
KernelInfo kernel_MeanVarianceNormalization() { return {.since = 9, .make = make_mean_variance}; }

}  // namespace quench::exec
