// SPDX-License-Identifier: Apache-2.0
// One HTML file that shows a quantisation: no server, no network.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "quench/analysis.h"
#include "quench/evaluate.h"
#include "quench/statistics.h"
#include "quench/training_report.h"

namespace quench::report {

/// Quantisation parameters, as people read them.
struct ReportParams {
  int bits = 8;
  std::string scheme;      ///< symmetric or not, per tensor or per channel
  std::string scale;       ///< one, or the least and the greatest
  std::string zero_point;  ///< likewise
  double clipped = 0;      ///< percent of what was seen that lies outside of the range
};

/// A histogram with the range of the scale that was chosen.
struct ReportHistogram {
  std::string name;
  double min = 0;
  double max = 0;
  std::vector<double> share;
  std::vector<double> quantized;  ///< shares after quantisation; empty: not known
  std::optional<Range> range;
  std::optional<ReportParams> params;
};

struct ReportLayer {
  std::string name;
  std::string op_type;
  std::string kind;  ///< "integer", "weight" or "float"
  std::string reason;
  int bits = 0;                       ///< of the weight; 0: in float
  std::optional<LayerError> error;    ///< accumulated: with those of the layers before it
  std::optional<double> own_sqnr;     ///< the layer's own error, in dB
  std::optional<double> weight_sqnr;  ///< of a weight that is stored alone, in dB
  std::optional<ReportHistogram> weight;
  std::optional<ReportHistogram> activation;
};

struct ReportNode {
  std::string name;
  std::string op_type;
  std::string kind;  ///< "integer", "moves", "weight" or "float"
  std::optional<double> sqnr;
  std::int64_t depth = 0;           ///< nodes on the longest way from an input
  std::vector<std::size_t> inputs;  ///< indices of the nodes it reads from
};

struct ReportData {
  std::string title;
  std::string version;
  std::string command;                                     ///< what the user typed; may be empty
  std::vector<std::pair<std::string, std::string>> cards;  ///< what is looked at first
  std::vector<std::string> warnings;
  std::vector<std::pair<std::string, std::string>> summary;
  std::vector<std::pair<std::string, std::string>> settings;
  std::vector<ReportLayer> layers;
  std::vector<ReportNode> nodes;
  std::vector<OutputScores> outputs;
  std::optional<SensitivityResult> sensitivity;
  std::optional<TargetTrials> target;
  TrainingReport training;  ///< without points where nothing was trained
};

/// The page. No text of `data` can leave its place: markup and script in names stay text.
std::string html_report(const ReportData& data);
/// The data of a page, as JSON; throws Error(BadData) that names the file.
std::string read_report_json(const std::string& path);

}  // namespace quench::report
