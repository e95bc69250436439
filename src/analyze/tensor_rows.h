// SPDX-License-Identifier: Apache-2.0
// Every weight and activation of a job, before and after quantisation.
#pragma once

#include <string>
#include <vector>

#include "analyze/simulator.h"
#include "quench/statistics.h"
#include "tune/state.h"

namespace quench::analyze {

/// A weight or an activation: as it was, as it became, and what lies between.
struct TensorRow {
  std::string name;
  bool is_weight = false;
  std::string weight;  ///< of an activation: the weight of the layer that reads it
  Statistic real;
  Statistic quantized;
  Statistic difference;  ///< float less quantised
  Statistic integers;    ///< what stands in the file or the kernel; empty: it has no scale
};

/// Activations in the order of the layers that read them, then weights: one pass over all samples,
/// in which the float and the quantised model see the same ones.
std::vector<TensorRow> tensor_rows(const tune::State& job, Simulator& simulator);
/// How many samples that pass has.
std::int64_t num_row_samples(const tune::State& job);

}  // namespace quench::analyze
