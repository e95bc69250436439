// SPDX-License-Identifier: Apache-2.0
// PaddleSlim's table of tensors before and after quantisation.
#pragma once

#include <string>
#include <vector>

#include "analyze/tensor_rows.h"

namespace quench::report {

/// statistic.csv: activations by name, then weights.
std::string statistics_table(std::vector<analyze::TensorRow> rows);

/// The value below which a share `p` of what was seen lies, from the exact counts: inside a bin
/// values are taken as evenly spread.
double quantile(const Statistic& statistic, double p);
/// Shares of `count` equal bins over [min, max].
std::vector<double> shares(const Statistic& statistic, std::size_t count);

}  // namespace quench::report
