// SPDX-License-Identifier: Apache-2.0
// An autograd function over the loops: nothing between them is stored.
#include "qat/engine/fake_quantize.h"

#include "qat/engine/loops.h"
#include "qat/engine/on_gpu.h"

namespace quench::qat {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The tensor as rows, each with one scale, cut into stretches.
struct Rows {
  std::int64_t rows = 1;
  std::int64_t columns = 0;
  std::int64_t stretches = 0;  ///< of a row

  Rows(const at::Tensor& x, const at::Tensor& scale) {
    rows = scale.numel();
    columns = rows == 0 ? 0 : x.numel() / rows;
    stretches = (columns + kStretch - 1) / kStretch;
  }
};

/// Calls body(row, first element, count, place among all stretches) on all threads.
template <typename Body>
void for_each_stretch(const Rows& rows, const Body& body) {
  const std::int64_t grain =
      std::max<std::int64_t>(1, kStretch / std::max<std::int64_t>(rows.columns, 1));
  at::parallel_for(0, rows.rows * rows.stretches, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t place = begin; place < end; ++place) {
      const std::int64_t row = place / rows.stretches;
      const std::int64_t first = (place % rows.stretches) * kStretch;
      body(row, row * rows.columns + first, std::min(kStretch, rows.columns - first), place);
    }
  });
}

Scaling scaling_of(const float* scale, const float* zero_point, std::int64_t row,
                   const std::array<double, 2>& steps) {
  return {.scale = scale[row],
          .low = static_cast<float>(steps[0]) - zero_point[row],
          .high = static_cast<float>(steps[1]) - zero_point[row]};
}

/// Channels first, in whatever order of the rest: `x` is dense.
class FakeQuantize : public torch::autograd::Function<FakeQuantize> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& scale,
                            const at::Tensor& zero_point, const at::Tensor& offset, double low,
                            double high, double most, double factor) {
    context->save_for_backward({x, scale, zero_point});
    context->saved_data["low"] = low;
    context->saved_data["high"] = high;
    context->saved_data["most"] = most;
    context->saved_data["factor"] = factor;
    context->saved_data["by_scale"] = scale.requires_grad();
    context->saved_data["by_offset"] = offset.requires_grad();
    if (x.is_cuda()) {
      return fake_quantize_on_gpu(
          {.x = x, .scale = scale, .zero_point = zero_point, .steps = {low, high}, .most = most});
    }
    at::Tensor y = at::empty_like(x);
    const float* src = x.data_ptr<float>();
    const float* scales = scale.data_ptr<float>();
    const float* zeros = zero_point.data_ptr<float>();
    float* dst = y.data_ptr<float>();
    for_each_stretch(Rows(x, scale), [&](auto row, auto at, auto count, auto) {
      fake_quantize_loop(src + at, count, scaling_of(scales, zeros, row, {low, high}), dst + at);
    });
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor& scale = saved[1];
    const std::array<double, 2> steps = {context->saved_data["low"].toDouble(),
                                         context->saved_data["high"].toDouble()};
    // Laid out as x: both are read side by side.
    at::Tensor gradient = gradients[0];
    if (gradient.strides() != x.strides()) gradient = at::empty_like(x).copy_(gradient);
    if (x.is_cuda()) {
      return backward_on_gpu(
          *context, {x, scale, saved[2], steps, context->saved_data["most"].toDouble()}, gradient);
    }
    at::Tensor dx = at::empty_like(x);
    const Rows rows(x, scale);
    std::vector<ScalingGradient> sums(static_cast<std::size_t>(rows.rows * rows.stretches));
    const float* src = x.data_ptr<float>();
    const float* from = gradient.data_ptr<float>();
    const float* scales = scale.data_ptr<float>();
    const float* zeros = saved[2].data_ptr<float>();
    float* dst = dx.data_ptr<float>();
    for_each_stretch(rows, [&](auto row, auto at, auto count, auto place) {
      sums[static_cast<std::size_t>(place)] = fake_quantize_gradient(
          src + at, from + at, count, scaling_of(scales, zeros, row, steps), dst + at);
    });
    const double factor = context->saved_data["factor"].toDouble();
    const auto total = [&](double ScalingGradient::*part) {
      at::Tensor result = at::zeros_like(scale);
      float* to = result.data_ptr<float>();
      for (std::int64_t row = 0; row < rows.rows; ++row) {
        double sum = 0;
        for (std::int64_t i = 0; i < rows.stretches; ++i) {
          sum += sums[static_cast<std::size_t>(row * rows.stretches + i)].*part;
        }
        to[row] = static_cast<float>(sum * factor);
      }
      return result;
    };
    const bool by_scale = context->saved_data["by_scale"].toBool();
    const bool by_offset = context->saved_data["by_offset"].toBool();
    return gradients_of(dx, by_scale ? total(&ScalingGradient::scale) : at::Tensor(),
                        by_offset ? total(&ScalingGradient::offset) : at::Tensor());
  }

 private:
  static variable_list backward_on_gpu(AutogradContext& context, const GpuRows& rows,
                                       const at::Tensor& gradient) {
    const GpuGradients found =
        fake_quantize_gradient_on_gpu(rows, gradient,
                                      {.by_scale = context.saved_data["by_scale"].toBool(),
                                       .by_offset = context.saved_data["by_offset"].toBool(),
                                       .factor = context.saved_data["factor"].toDouble()});
    return gradients_of(found.x, found.scale, found.offset);
  }

  /// In the order of the arguments of `forward`.
  static variable_list gradients_of(const at::Tensor& x, const at::Tensor& scale,
                                    const at::Tensor& offset) {
    const at::Tensor none;
    return {x, scale, none, offset, none, none, none, none};
  }
};

/// Whether what has one index along the first dimension lies together.
bool in_rows(const at::Tensor& x) {
  return x.is_non_overlapping_and_dense() && x.stride(0) * x.size(0) == x.numel();
}

at::Tensor dense(const at::Tensor& x) {
  return x.is_non_overlapping_and_dense() ? x : x.contiguous();
}

}  // namespace

Steps steps_of(const QuantSpec& spec) {
  return {.low = spec.q_min(), .high = spec.q_max(), .axis = spec.axis};
}

at::Tensor fake_quantize(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& zero_point,
                         const Steps& steps, const at::Tensor& offset) {
  const auto low = static_cast<double>(steps.low);
  const auto high = static_cast<double>(steps.high);
  // Quanters may keep their few numbers on the CPU while x is on a GPU.
  const at::Tensor own_scale = scale.to(x.device());
  const at::Tensor own_zero = zero_point.to(x.device());
  // Autograd functions take no undefined tensor.
  const at::Tensor learned = offset.defined() ? offset.to(x.device()) : own_zero;
  const auto apply = [&](const at::Tensor& rows) {
    return FakeQuantize::apply(rows, own_scale, own_zero, learned, low, high, steps.most,
                               steps.gradient_factor);
  };
  if (scale.numel() == 1) return apply(dense(x));
  if (steps.axis == 0) return apply(in_rows(x) ? x : x.contiguous());
  const at::Tensor moved = x.movedim(steps.axis, 0);
  return apply(moved.contiguous()).movedim(0, steps.axis);
}

at::Tensor scale_tensor(const QuantParams& params) {
  return at::tensor(at::ArrayRef<float>(params.scale));
}

at::Tensor zero_point_tensor(const QuantParams& params) {
  const std::vector<float> zeros(params.zero_point.begin(), params.zero_point.end());
  return at::tensor(at::ArrayRef<float>(zeros));
}

QuantParams to_params(const QuantSpec& spec, const at::Tensor& scale,
                      const at::Tensor& zero_point) {
  QuantParams params{.spec = spec};
  const at::Tensor scale_here = scale.detach().to(at::kCPU).contiguous();
  const at::Tensor zero_here = zero_point.detach().to(at::kCPU).contiguous();
  const float* scales = scale_here.data_ptr<float>();
  const float* zeros = zero_here.data_ptr<float>();
  params.scale.assign(scales, scales + scale.numel());
  for (std::int64_t i = 0; i < scale.numel(); ++i) {
    params.zero_point.push_back(static_cast<std::int32_t>(zeros[i]));
  }
  return params;
}

}  // namespace quench::qat
