// SPDX-License-Identifier: Apache-2.0
// AdaRound.
#include "qat/engine/adaround.h"

namespace quench::qat {
namespace {

/// The sigmoid is stretched a little beyond 0 and 1, so that it reaches both.
constexpr double kStretchLow = -0.1;
constexpr double kStretchHigh = 1.1;

at::Tensor along(const at::Tensor& vector, const QuantSpec& spec, std::int64_t rank) {
  if (spec.axis < 0) return vector;
  std::vector<std::int64_t> shape(static_cast<std::size_t>(rank), 1);
  shape[static_cast<std::size_t>(spec.axis)] = vector.numel();
  return vector.reshape(shape);
}

}  // namespace

AdaRound::AdaRound(const QuantParams& params, const at::Tensor& weight)
    : params_(params), rank_(weight.dim()) {
  const at::NoGradGuard no_gradients;
  const QuantSpec& spec = params.spec;
  const at::Tensor zero = along(zero_point_tensor(params).to(weight.device()), spec, weight.dim());
  scale_ = scale_tensor(params).to(weight.device());
  const at::Tensor scale = along(scale_, spec, rank_);
  least_ = static_cast<double>(spec.q_min()) - zero;
  most_ = static_cast<double>(spec.q_max()) - zero;
  const at::Tensor steps = at::minimum(at::maximum(weight.detach() / scale, least_), most_);
  low_ = at::floor(steps);
  const at::Tensor share =
      at::clamp((steps - low_ - kStretchLow) / (kStretchHigh - kStretchLow), 1e-4, 1 - 1e-4);
  choice_ = at::logit(share).clone().requires_grad_(true);
  scale_.requires_grad_(true);
}

QuantParams AdaRound::params() const {
  return to_params(params_.spec, scale_, zero_point_tensor(params_));
}

void AdaRound::harden() {
  hard_ = true;
  choice_.requires_grad_(false);
}

at::Tensor AdaRound::rounded_up() const {
  const at::Tensor stretched = at::sigmoid(choice_) * (kStretchHigh - kStretchLow) + kStretchLow;
  const at::Tensor soft = at::clamp(stretched, 0, 1);
  return hard_ ? (soft >= 0.5).to(at::kFloat) : soft;
}

at::Tensor AdaRound::with_rounding(const at::Tensor& up) const {
  return at::minimum(at::maximum(low_ + up, least_), most_) * along(scale_, params_.spec, rank_);
}

at::Tensor AdaRound::forward(const at::Tensor&) { return with_rounding(rounded_up()); }

at::Tensor AdaRound::written(const at::Tensor&) const {
  const at::NoGradGuard no_gradients;
  return with_rounding((choice_ >= 0).to(at::kFloat));
}

at::Tensor AdaRound::undecided(double sharpness) const {
  return (1 - (rounded_up() * 2 - 1).abs().pow(sharpness)).mean();
}

std::vector<Trained> AdaRound::parameters() const {
  return {{.name = "rounding", .tensor = choice_}, {.name = "scale", .tensor = scale_}};
}

}  // namespace quench::qat
