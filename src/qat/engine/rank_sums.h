// SPDX-License-Identifier: Apache-2.0
// Ranks that each train on a part of every batch, as one that trains on all of it.
#pragma once

#include "qat/engine/torch.h"
#include "quench/context.h"

namespace quench::qat {

/// With this rank's share of a batch, between 0 and 1. Without ranks it does nothing.
class RankSums {
 public:
  RankSums(const Context& context, double share) : context_(context), share_(share) {}

  /// The gradients, and the loss, become those of the whole batch.
  void reduce(const torch::optim::Optimizer& optimizer, double& loss) const;
  /// What quanters and normalisations have seen becomes the mean over the batch.
  void average(const std::vector<at::Tensor>& state) const;

 private:
  const Context& context_;
  double share_;
};

}  // namespace quench::qat
