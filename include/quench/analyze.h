// SPDX-License-Identifier: Apache-2.0
// The jobs behind `quench analyze`, and PaddleSlim's AnalysisPTQ.
#pragma once

#include <functional>
#include <string>

#include "quench/analysis.h"
#include "quench/quantize.h"

namespace quench {

/// Any number that says how good a quantised model is; higher is better.
using EvalFunction = std::function<double(const Model& quantized)>;

/// What every kind of analysis needs.
struct AnalyzeOptions {
  QuantizeOptions quantize;  ///< configuration and calibration data
  DataOptions eval;          ///< samples to judge by; without a path, the calibration data
  /// top1, top5, or one against the float model: sqnr, cosine, agreement, mse, max_abs. Empty:
  /// top1 where there are labels, else sqnr.
  std::string metric;
  EvalFunction eval_function;  ///< instead of `metric`
  /// Instead of `metric`: a shell command that prints a number, higher is better. {model} stands
  /// for the file of the quantised model.
  std::string metric_command;
  std::string save_dir = "analysis_results";
  bool resume = false;  ///< take up what an interrupted run left in `save_dir`
};

/// How `analyze_sensitivity` works.
struct SensitivityOptions {
  bool reverse = false;      ///< quantise all layers but one
  bool quick = false;        ///< sure only of which layers are the worst
  std::int64_t worst = 10;   ///< how many of them
  bool partial_runs = true;  ///< false: run the whole model for every layer
};

/// Quantises one layer at a time, ranks the layers, and writes `save_dir`/analysis.txt.
SensitivityResult analyze_sensitivity(const std::string& model_path, const AnalyzeOptions& options,
                                      const SensitivityOptions& how = {},
                                      const Context& context = {});

}  // namespace quench
