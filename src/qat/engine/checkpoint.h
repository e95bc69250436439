// SPDX-License-Identifier: Apache-2.0
// Training that can be stopped at any moment and gone on with.
#pragma once

#include "qat/engine/torch.h"
#include "quench/training_report.h"

namespace quench::qat {

/// What a checkpoint holds besides the model and settings that it is of.
struct CheckpointParts {
  std::int64_t step = 0;
  std::int64_t validated = -1;
  std::int64_t without_gain = 0;
  double best = 0;
  std::vector<at::Tensor> state;       ///< loading copies into these
  std::vector<at::Tensor> best_state;  ///< of the step that validated best; empty: none yet
  torch::optim::Optimizer* optimizer = nullptr;
  TrainingReport report;
};

/// Copies tensors one by one into others of the same count.
void restore(const std::vector<at::Tensor>& from, const std::vector<at::Tensor>& to);

/// Writes to a temporary file, then renames: a kill leaves the one before.
void save_checkpoint(const std::string& path, const std::string& origin,
                     const CheckpointParts& parts);
/// False where there is no file. Throws Error(BadData) where it is damaged, or of another model or
/// other settings.
bool load_checkpoint(const std::string& path, const std::string& origin, CheckpointParts& parts);

}  // namespace quench::qat
