// SPDX-License-Identifier: Apache-2.0
// Batch normalisation that goes on while a program is trained: its folding is simulated.
#include <algorithm>

#include "qat/engine/program.h"

namespace quench::qat {
namespace {

/// What stays of the running statistics in a step.
constexpr double kMomentum = 0.9;
/// A layer is left folded where its weight is not what folding gave.
constexpr double kSameShift = 1e-3;

at::Tensor vector_of(const std::vector<float>& values, at::Device device) {
  return at::tensor(at::ArrayRef<float>(values)).to(device);
}

/// A vector of channels in a shape that stretches over a tensor of this rank.
at::Tensor by_channel(const at::Tensor& vector, std::int64_t axis, std::int64_t rank) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(rank), 1);
  shape[static_cast<std::size_t>(axis)] = vector.numel();
  return vector.reshape(shape);
}

}  // namespace

void Program::keep_norms(const std::vector<FoldedNorm>& norms) {
  const at::NoGradGuard no_gradients;
  for (const FoldedNorm& norm : norms) {
    const auto weight = std::ranges::find(weights_, WeightKey{norm.layer, 1}, &Weight::key);
    if (weight == weights_.end() || !leaves_.contains(weight->constant)) continue;
    const Node& node = node_called(graph_, norm.layer);
    const auto bias = leaves_.find(node.input(2));
    const at::Tensor& leaf = leaves_.at(weight->constant);
    const bool fits = node.op_type == "Conv" && bias != leaves_.end() &&
                      leaf.size(0) == static_cast<std::int64_t>(norm.scale.size());
    if (!fits) continue;
    // u' = u * scale / deviation: the folded layer without its bias. There the scale is positive,
    // and epsilon is scaled with it.
    const at::Tensor scale = vector_of(norm.scale, leaf.device());
    const at::Tensor variance = vector_of(norm.variance, leaf.device());
    const at::Tensor factor = scale / at::sqrt(variance + norm.epsilon);
    const at::Tensor shift = vector_of(norm.shift, leaf.device());
    Norm kept{.weight = static_cast<std::size_t>(weight - weights_.begin()), .bias = node.input(2)};
    kept.scale = scale.abs().clone();
    kept.shift = shift.clone();
    kept.mean = shift - bias->second.detach();
    kept.variance = factor.pow(2) * variance;
    kept.epsilon = factor.pow(2) * norm.epsilon + 1e-20;
    const at::Tensor one = kept.factor();
    const bool same = at::allclose(one, at::ones_like(one), kSameShift, kSameShift);
    if (!same) continue;  // a channel that was scaled to nothing, or equalised
    kept.scale.requires_grad_(true);
    kept.shift.requires_grad_(true);
    norms_.push_back(std::move(kept));
  }
}

const Program::Norm* Program::norm_of(std::size_t weight) const {
  const auto found = std::ranges::find(norms_, weight, &Norm::weight);
  return found == norms_.end() ? nullptr : &*found;
}

at::Tensor Program::folded_weight(std::size_t weight) const {
  const at::Tensor& leaf = slots_[static_cast<std::size_t>(weights_[weight].constant)];
  const Norm* norm = norm_of(weight);
  return norm == nullptr ? leaf : leaf * by_channel(norm->factor(), 0, leaf.dim());
}

at::Tensor Program::folded_bias(const Norm& norm) const {
  return norm.shift - norm.mean * norm.factor();
}

at::Tensor Program::bias_for(const Bias& bias) {
  const Norm* norm = norm_of(bias.weight);
  // The batch's own mean takes any bias away.
  if (norm != nullptr && normalizes()) return at::zeros_like(norm->shift);
  const at::Tensor real =
      norm != nullptr ? folded_bias(*norm) : slots_[static_cast<std::size_t>(bias.constant)];
  return quantizes_ ? quantized_bias(bias, real) : real;
}

void Program::normalize(const Norm& norm, at::Tensor& value) {
  std::vector<std::int64_t> axes = {0};
  for (std::int64_t i = 2; i < value.dim(); ++i) axes.push_back(i);
  // The layer's weights had the running statistics folded in: back to what is normalised.
  const at::Tensor raw = value / by_channel(norm.factor(), 1, value.dim());
  const at::Tensor mean = raw.mean(axes);
  const at::Tensor variance = raw.var(axes, /*unbiased=*/false);
  const at::Tensor factor = norm.scale / at::sqrt(variance + norm.epsilon);
  value = (raw - by_channel(mean, 1, value.dim())) * by_channel(factor, 1, value.dim()) +
          by_channel(norm.shift, 1, value.dim());
  const at::NoGradGuard no_gradients;
  at::Tensor(norm.mean).mul_(kMomentum).add_(mean.detach(), 1 - kMomentum);
  at::Tensor(norm.variance).mul_(kMomentum).add_(variance.detach(), 1 - kMomentum);
}

void Program::normalize_outputs(const Step& step) {
  if (norms_.empty() || !normalizes()) return;
  for (const Norm& norm : norms_) {
    const std::string& name = weights_[norm.weight].key.first;
    if (step.out[0] >= 0 && graph_[step.out[0]].name == name) {
      normalize(norm, slots_[static_cast<std::size_t>(step.out[0])]);
    }
  }
}

}  // namespace quench::qat
