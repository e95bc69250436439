// SPDX-License-Identifier: Apache-2.0
// The difference of two HTML reports, and converter_lite's tables.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "quench/analyze.h"

namespace quench {

/// A layer in two reports; NaN and "" where it is not in one of them.
struct LayerChange {
  std::string layer;
  std::string kind_a;
  std::string kind_b;
  double sqnr_a = 0;
  double sqnr_b = 0;
};
/// In the order of the first report. Throws Error(BadData) for a file that is no report.
std::vector<LayerChange> diff_reports(const std::string& path_a, const std::string& path_b);

/// What `write_debug_info` looks at.
struct DebugInfoOptions {
  DataOptions data;  ///< without a path, one sample at random
  std::map<std::string, Shape> input_shapes;
  std::string folder;       ///< made when it is not there; files of a run before are replaced
  std::int64_t rounds = 0;  ///< samples, one a file; 0: all
  QuantType type = QuantType::Full;  ///< how the quantised model was made
};

/// converter_lite's tables: output_summary.csv, round_<i>.csv for each sample, quant_param.csv.
/// `quantize` writes them where `debug_info_save_path` is set; there after equalisation.
void write_debug_info(const std::string& model_path, const std::string& quantized_path,
                      const DebugInfoOptions& options, const Context& context = {});

}  // namespace quench
