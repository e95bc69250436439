// SPDX-License-Identifier: Apache-2.0
// Optimisers by name, with a learning rate for each kind of tensor.
#pragma once

#include "qat/engine/torch.h"
#include "quench/quanter.h"
#include "quench/training.h"

namespace quench::qat {

/// The root mean square of a tensor: what rates are relative to with Adam and AdamW.
double size_of(const at::Tensor& tensor);

/// The highest rate where none is asked for.
double usual_rate(const TrainingOptions& options, std::int64_t samples);

/// libtorch's, with our schedule: the rate rises in the warm-up, then falls along a cosine.
class Optimizer {
 public:
  /// Scales are learned relative to their size. `samples`: how many there are to learn from.
  Optimizer(const std::vector<Trained>& weights, const std::vector<Trained>& quanters,
            const TrainingOptions& options, std::int64_t samples);
  /// `progress`: the share of the training that is done.
  void step(double progress);
  /// With this rate, whatever the schedule says.
  void step_at(double rate);
  void zero_grad() { optimizer_->zero_grad(); }
  /// All that it changes.
  std::vector<at::Tensor> learned() const;
  double rate() const noexcept { return rate_; }
  torch::optim::Optimizer& torch() noexcept { return *optimizer_; }

 private:
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::vector<double> factors_;  ///< by group
  TrainingOptions options_;
  double peak_ = 0;
  double rate_ = 0;
};

}  // namespace quench::qat
