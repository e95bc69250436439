// SPDX-License-Identifier: Apache-2.0
// What every analysis starts from: the prepared model, its statistics and the evaluation data.
#pragma once

#include <memory>
#include <optional>

#include "analyze/eval_data.h"
#include "analyze/score.h"
#include "analyze/simulator.h"
#include "quench/analyze.h"

namespace quench {

/// Made by `set_up_analysis`.
struct Analysis {
  std::string model_path;
  std::unique_ptr<analyze::Simulator> simulator;
  std::unique_ptr<SampleSource> calibration;  ///< null with a statistics file
  std::int64_t calibration_samples = 0;
  std::optional<analyze::EvalData> data;  ///< nothing where a function judges
  std::optional<analyze::Scorer> scorer;
  EvalFunction eval;  ///< the caller's function, or the metric command
  double calibration_seconds = 0;
};

/// Which parts of an analysis are wanted.
enum class AnalysisNeeds { Statistics, Evaluation };

/// Loads, prepares and calibrates. `context` must outlive the result.
Analysis set_up_analysis(const std::string& model_path, const AnalyzeOptions& options,
                         AnalysisNeeds needs, const Context& context);

/// The outputs that hold floats.
std::vector<std::string> float_output_names(const Graph& graph);
/// Makes the folder and those above it; throws Error(Io) that names it.
void make_folder(const std::string& path);
/// A text file that appears whole or not at all.
void write_text(const std::string& path, std::string_view text);
/// Names as they may stand on a line: control characters become spaces.
std::string on_one_line(std::string_view name);

/// Runs a shell command on a model: {model} stands for its file, which is written to `folder`.
/// Throws Error(BadData) when it fails or prints no number.
double run_metric_command(const std::string& command, const Model& model,
                          const std::string& folder);

}  // namespace quench
