// SPDX-License-Identifier: Apache-2.0
// What training did.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace quench {

/// One line of the training curve.
struct TrainingPoint {
  std::int64_t step = 0;
  double loss = 0;  ///< mean since the last point
  double rate = 0;
  std::optional<double> score;  ///< of the validation set
};

/// Of a whole training, or of the reconstruction of layers and blocks.
struct TrainingReport {
  std::int64_t steps = 0;
  std::int64_t samples = 0;  ///< to train with
  std::vector<TrainingPoint> curve;
  std::optional<double> start_score;  ///< of the post-training solution
  std::int64_t best_step = 0;         ///< whose model was kept; 0: the post-training solution
  std::int64_t blocks = 0;            ///< reconstructed
  std::string score_name;             ///< "top1", "sqnr"
  double images_per_second = 0;
  double seconds = 0;
};

}  // namespace quench
