// SPDX-License-Identifier: Apache-2.0
// The first samples through the float model: statistics and means of one pass.
#pragma once

#include "quench/data.h"
#include "quench/statistics.h"
#include "tune/layer_means.h"

namespace quench::tune {

/// What a pass reads.
struct FirstSamples {
  SampleSource& source;
  std::int64_t count = 0;
  std::int64_t batch = 1;
};

/// What the first samples of the calibration set came to.
struct FirstPass {
  std::vector<std::string> values;  ///< those of the statistics
  std::int64_t samples = 0;
  StatisticMap statistics;
  LayerMeans means;  ///< of what bias correction may correct
};

FirstPass pass_first(const Model& model, const QuantPlan& plan, std::vector<std::string> values,
                     const FirstSamples& samples, const Context& context);

}  // namespace quench::tune
