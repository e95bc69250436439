// SPDX-License-Identifier: Apache-2.0
// Optimisers by name.
#include "qat/engine/optimizer.h"

#include <cmath>
#include <numbers>

#include "base/format.h"
#include "qat/train.h"

namespace quench::qat {
namespace {

/// What usually works when a trained network is trained on.
constexpr double kAdamRate = 5e-3;  ///< relative to the size of each tensor
constexpr double kZeros = 0.01;     ///< the size that a tensor of zeros is taken for
constexpr double kSgdRate = 1e-2;
/// The last rate, as a share of the highest.
constexpr double kLast = 0.01;

template <typename Options>
torch::optim::OptimizerParamGroup group(const at::Tensor& tensor, Options options) {
  return {{tensor}, std::make_unique<Options>(options)};
}

void set_rate(torch::optim::OptimizerParamGroup& group, double rate, const std::string& name) {
  if (name == "sgd") static_cast<torch::optim::SGDOptions&>(group.options()).lr(rate);
  if (name == "adam") static_cast<torch::optim::AdamOptions&>(group.options()).lr(rate);
  if (name == "adamw") static_cast<torch::optim::AdamWOptions&>(group.options()).lr(rate);
}

}  // namespace

/// Adam moves every element by about the rate, whatever the tensor's size is: weights of 0.001
/// (folded normalisation, raw pixels) would be lost in a step, those of 10 would never move. So
/// the rate is relative to the size.
double size_of(const at::Tensor& tensor) {
  const auto size = tensor.detach().pow(2).mean().sqrt().item<double>();
  return size > 0 ? size : kZeros;
}

/// The mean gradient of n samples is off by 1/sqrt(n): the fewer there are, the sooner following it
/// fits those samples and nothing else.
double usual_rate(const TrainingOptions& options, std::int64_t samples) {
  const double rate = options.optimizer == "sgd" ? kSgdRate : kAdamRate;
  const double share = static_cast<double>(samples) / static_cast<double>(kEnoughSamples);
  return rate * std::min(1.0, std::sqrt(share));
}

Optimizer::Optimizer(const std::vector<Trained>& weights, const std::vector<Trained>& quanters,
                     const TrainingOptions& options, std::int64_t samples)
    : options_(options) {
  const bool sgd = options.optimizer == "sgd";
  peak_ = options.rate > 0 ? options.rate : usual_rate(options, samples);
  std::vector<torch::optim::OptimizerParamGroup> groups;
  const auto add = [&](const Trained& each, double factor) {
    const double decay = each.decay ? options.weight_decay : 0;
    using namespace torch::optim;
    if (sgd) {
      groups.push_back(
          group(each.tensor, SGDOptions(peak_).momentum(options.momentum).weight_decay(decay)));
    } else if (options.optimizer == "adam") {
      groups.push_back(group(each.tensor, AdamOptions(peak_).weight_decay(decay)));
    } else {
      groups.push_back(group(each.tensor, AdamWOptions(peak_).weight_decay(decay)));
    }
    factors_.push_back(factor * each.rate);
  };
  for (const auto* list : {&weights, &quanters}) {
    for (const Trained& each : *list) add(each, sgd ? 1 : size_of(each.tensor));
  }
  if (sgd) {
    optimizer_ = std::make_unique<torch::optim::SGD>(groups, torch::optim::SGDOptions(peak_));
  } else if (options.optimizer == "adam") {
    optimizer_ = std::make_unique<torch::optim::Adam>(groups);
  } else if (options.optimizer == "adamw") {
    optimizer_ = std::make_unique<torch::optim::AdamW>(groups);
  } else {
    fail(ErrorKind::Usage, "no optimiser is called '{}' (there are: adamw, adam, sgd)",
         options.optimizer);
  }
}

std::vector<at::Tensor> Optimizer::learned() const {
  std::vector<at::Tensor> tensors;
  for (const auto& group : optimizer_->param_groups()) {
    tensors.insert(tensors.end(), group.params().begin(), group.params().end());
  }
  return tensors;
}

void Optimizer::step(double progress) {
  const double warmup = options_.warmup;
  double share = 1;
  if (progress < warmup) {
    share = std::max(progress / warmup, 0.01);
  } else {
    const double left = (progress - warmup) / std::max(1 - warmup, 1e-9);
    share = kLast + (1 - kLast) * (0.5 + 0.5 * std::cos(std::numbers::pi * std::min(left, 1.0)));
  }
  step_at(peak_ * share);
}

void Optimizer::step_at(double rate) {
  rate_ = rate;
  for (std::size_t i = 0; i < factors_.size(); ++i) {
    set_rate(optimizer_->param_groups()[i], rate_ * factors_[i], options_.optimizer);
  }
  optimizer_->step();
}

}  // namespace quench::qat
