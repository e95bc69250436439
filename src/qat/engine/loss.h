// SPDX-License-Identifier: Apache-2.0
// What training makes small.
#pragma once

#include "qat/engine/batches.h"
#include "qat/train.h"
#include "quench/session.h"

namespace quench::qat {

/// Cross-entropy with labels, or the distance to what the float model gives.
class Loss {
 public:
  Loss(const Request& request, double features);

  /// The values that a run must compute for it.
  const std::vector<std::string>& wanted() const noexcept { return wanted_; }
  /// `got` are those values.
  at::Tensor of(const TrainingBatch& batch, const std::vector<at::Tensor>& got);

 private:
  at::Tensor by_labels(const TrainingBatch& batch, const at::Tensor& output) const;
  at::Tensor by_teacher(const TrainingBatch& batch, const std::vector<at::Tensor>& got);

  bool by_labels_;
  double features_;
  std::vector<std::string> wanted_;
  std::size_t outputs_ = 0;       ///< of `wanted_`; the rest are features
  std::vector<bool> are_shares_;  ///< by output: Softmax makes it
  std::unique_ptr<Session> teacher_;
};

}  // namespace quench::qat
