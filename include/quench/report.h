// SPDX-License-Identifier: Apache-2.0
// The difference of two HTML reports, and converter_lite's tables.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "quench/analyze.h"

namespace quench {

/// What a report says of a layer; "", 0 and NaN where it says nothing.
struct LayerSide {
  std::string kind;              ///< "integer", "weight" or "float"; "": the layer is not there
  int bits = 0;                  ///< of the weight
  std::string weight_scale;      ///< one, or the least and the greatest
  std::string activation_scale;  ///< of what the layer makes
  std::string zero_point;        ///< likewise
  double sqnr = 0;               ///< accumulated, in dB
  double own_sqnr = 0;           ///< of the layer alone
};
/// A layer in two reports.
struct LayerChange {
  std::string layer;
  LayerSide a;
  LayerSide b;
  std::vector<std::string> changed;  ///< "kind", "bits", "weight scale", ...; empty: nothing did
  double change = 0;                 ///< of its error in dB: its own, else accumulated
};
/// A line that both reports have, or one of them, with another value.
struct FactChange {
  std::string name;
  std::string a;
  std::string b;
};
/// Two reports beside each other.
struct ReportDiff {
  std::vector<FactChange> facts;    ///< sizes, speed and settings that differ
  std::vector<FactChange> outputs;  ///< scores of the outputs, all of them
  std::vector<LayerChange> layers;  ///< the one that changed most first
};
/// Throws Error(BadData) for a file that is no report.
ReportDiff diff_reports(const std::string& path_a, const std::string& path_b);

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
