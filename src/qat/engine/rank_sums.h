// SPDX-License-Identifier: Apache-2.0
// Ranks that each train on a part of every batch, as one that trains on all of it.
#pragma once

#include <memory>

#include "qat/engine/torch.h"
#include "quench/context.h"

namespace quench::qat {

class Buckets;

/// With this rank's share of a batch, between 0 and 1. Without ranks it does nothing.
class RankSums {
 public:
  /// `learned`: what gets gradients.
  RankSums(const Context& context, double share, const std::vector<at::Tensor>& learned);

  /// From the loss back to the gradients of the whole batch. Gradients are summed over ranks in
  /// buckets, while those of layers before them are still computed.
  void backward(const at::Tensor& loss) const;
  /// The loss of the whole batch.
  double sum(double loss) const;
  /// What quanters and normalisations have seen becomes the mean over the batch.
  void average(const std::vector<at::Tensor>& state) const;

 private:
  const Context& context_;
  double share_;
  std::shared_ptr<Buckets> buckets_;  ///< null: nothing to share
};

}  // namespace quench::qat
