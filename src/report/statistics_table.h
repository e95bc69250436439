// SPDX-License-Identifier: Apache-2.0
// PaddleSlim's table of tensors before and after quantisation.
#pragma once

#include <string>
#include <vector>

#include "quench/statistics.h"

namespace quench::report {

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

/// statistic.csv: activations by name, then weights.
std::string statistics_table(std::vector<TensorRow> rows);

/// The value below which a share `p` of what was seen lies, from the exact counts: inside a bin
/// values are taken as evenly spread.
double quantile(const Statistic& statistic, double p);
/// Shares of `count` equal bins over [min, max].
std::vector<double> shares(const Statistic& statistic, std::size_t count);

}  // namespace quench::report
