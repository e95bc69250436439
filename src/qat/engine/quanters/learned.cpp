// SPDX-License-Identifier: Apache-2.0
// A scale that is learned.
#include "qat/engine/quanters/learned.h"

#include <cmath>

#include "base/format.h"

namespace quench::qat {
namespace {

constexpr double kKeep = 0.9;  ///< of the scale so far, when the next batch is seen
constexpr float kLeastScale = 1e-12F;

std::int64_t channels_of(const QuanterSetup& setup, const at::Tensor& x) {
  return setup.spec.axis < 0 ? 1 : x.size(setup.spec.axis);
}

/// max(|mean - 3 deviations|, |mean + 3 deviations|) of each channel, as a range.
std::vector<Range> usual_weights(const at::Tensor& x, const QuantSpec& spec) {
  const at::Tensor rows = spec.axis < 0 ? x.reshape({1, -1}) : x.movedim(spec.axis, 0).flatten(1);
  const at::Tensor mean = rows.mean(1);
  const at::Tensor spread = rows.std(1, /*unbiased=*/false) * 3;
  const at::Tensor most = at::max((mean - spread).abs(), (mean + spread).abs());
  return in_ranges(-most, most);
}

}  // namespace

LearnedScale::LearnedScale(const QuanterSetup& setup, bool learns_offset)
    : setup_(setup),
      learns_offset_(learns_offset),
      scale_(at::ones({1}, setup.device)),
      offset_(at::zeros({1}, setup.device)),
      zero_point_(at::zeros({1}, setup.device)),
      batches_(at::zeros({}, at::kLong)) {
  if (setup.start) {
    start_with(*setup.start);
    batches_.fill_(-1);
  }
  scale_.requires_grad_(true);
  offset_.requires_grad_(learns_offset);
}

void LearnedScale::start_with(const QuantParams& params) {
  const at::NoGradGuard no_gradients;
  const at::Tensor scale = scale_tensor(params).to(setup_.device);
  const at::Tensor zero_point = zero_point_tensor(params).to(setup_.device);
  if (scale_.numel() == scale.numel()) {
    // Autograd may hold what an earlier value of this step had.
    scale_.variable_data().copy_(scale);
    zero_point_.variable_data().copy_(zero_point);
  } else {
    scale_.set_data(scale);
    zero_point_.set_data(zero_point);
  }
  offset_.set_data((static_cast<double>(setup_.spec.q_min()) - zero_point) * scale);
}

void LearnedScale::follow(const at::Tensor& x) {
  const auto seen = batches_.item<std::int64_t>();
  if (seen < 0 || seen >= setup_.batch_init) return;
  const at::NoGradGuard no_gradients;
  const at::Tensor now = x.detach();
  QuantParams next = choose_params(setup_.spec, setup_.is_weight ? usual_weights(now, setup_.spec)
                                                                 : ranges_of(now, setup_.spec));
  if (seen > 0) {
    const QuantParams so_far = params();
    for (std::size_t i = 0; i < next.scale.size(); ++i) {
      next.scale[i] = static_cast<float>(kKeep * static_cast<double>(so_far.scale[i]) +
                                         (1 - kKeep) * static_cast<double>(next.scale[i]));
      next.zero_point[i] = static_cast<std::int32_t>(
          std::nearbyint(kKeep * so_far.zero_point[i] + (1 - kKeep) * next.zero_point[i]));
    }
  }
  start_with(next);
  batches_.fill_(seen + 1);
}

void LearnedScale::keep_legal() {
  const at::NoGradGuard no_gradients;
  const auto low = static_cast<float>(setup_.spec.q_min());
  const auto high = static_cast<float>(setup_.spec.q_max());
  if (scale_.is_cuda()) {  // the kernel itself keeps the scale within its bounds
    if (!learns_offset_) return;
    const at::Tensor scale = at::clamp_min(scale_.detach(), kLeastScale);
    zero_point_.copy_(at::clamp(at::round(low - offset_.detach() / scale), low, high));
    return;
  }
  float* scale = scale_.data_ptr<float>();
  float* zero = zero_point_.data_ptr<float>();
  for (std::int64_t i = 0; i < scale_.numel(); ++i) {
    scale[i] = std::max(scale[i], kLeastScale);
    if (learns_offset_) {
      const float* offset = offset_.data_ptr<float>();
      zero[i] = std::clamp(std::nearbyint(low - offset[i] / scale[i]), low, high);
    }
    const double steps = static_cast<double>(high - zero[i]);
    if (steps > 0 && std::isfinite(greatest()) &&
        static_cast<double>(scale[i]) * steps > greatest()) {
      scale[i] = static_cast<float>(greatest() / steps);
    }
  }
}

double LearnedScale::greatest() const {
  return setup_.bounds ? setup_.bounds->max : std::numeric_limits<double>::infinity();
}

at::Tensor LearnedScale::forward(const at::Tensor& x) {
  if (training()) follow(x);
  if (!ready()) return x;
  keep_legal();
  Steps steps = steps_of(setup_.spec);
  const double elements =
      static_cast<double>(x.numel()) / static_cast<double>(channels_of(setup_, x));
  const double most = std::max<double>(static_cast<double>(setup_.spec.q_max()), 1);
  steps.gradient_factor = 1 / std::sqrt(std::max(elements * most, 1.0));
  steps.most = greatest();
  return fake_quantize(x, scale_, learns_offset_ ? zero_point_.clone() : zero_point_, steps,
                       learns_offset_ ? offset_ : at::Tensor());
}

QuantParams LearnedScale::params() const {
  if (!ready()) fail(ErrorKind::Usage, "no batch was seen yet: there is no scale to write");
  return to_params(setup_.spec, scale_, zero_point_);
}

std::vector<Trained> LearnedScale::parameters() const {
  std::vector<Trained> all = {{.name = "scale", .tensor = scale_}};
  if (learns_offset_) all.push_back({.name = "offset", .tensor = offset_});
  return all;
}

at::Tensor scale_of(const Quanter& quanter) {
  const auto* learned = dynamic_cast<const LearnedScale*>(&quanter);
  return learned != nullptr ? learned->scale() : scale_tensor(quanter.params());
}

}  // namespace quench::qat
