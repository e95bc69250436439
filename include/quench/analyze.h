// SPDX-License-Identifier: Apache-2.0
// The jobs behind `quench analyze`.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "quench/analysis.h"
#include "quench/quantize.h"

namespace quench {

/// Any number that says how good a quantised model is; higher is better.
using EvalFunction = std::function<double(const Model& quantized)>;

/// What every kind of analysis needs.
struct AnalyzeOptions {
  QuantizeOptions quantize;  ///< configuration and calibration data
  DataOptions eval;          ///< samples to evaluate by; without a path, the calibration data
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
  /// The model is quantised already, by whatever tool, with Q/DQ nodes; this is what it was made
  /// from. One layer at a time gets its float weights back and loses its quantisation: what is left
  /// out best comes first.
  std::string float_model;
  /// Of a model that is quantised already: ONNX's types of the layers to rank, empty for all; and
  /// its own metric, where it is known.
  std::vector<std::string> op_types;
  std::optional<double> quantized_metric;
};

/// Quantises one layer at a time, ranks the layers, and writes `save_dir`/analysis.txt.
SensitivityResult analyze_sensitivity(const std::string& model_path, const AnalyzeOptions& options,
                                      const SensitivityOptions& how = {},
                                      const Context& context = {});

/// How `analyze_target` works.
struct TargetOptions {
  double at_least = 0;
  /// Above 0: weights of the worst layers get that many bits before layers are left in float.
  int raise_bits = 0;
  std::string out_path;     ///< the model; empty: `save_dir`/target_quant_model/model.onnx
  bool one_by_one = false;  ///< search as PaddleSlim does: one layer more until it is enough
};

/// Finds the most quantised model whose metric is at least a number; verifies it on the whole
/// evaluation set and writes it, with `save_dir`/target.cfg, which `quench quantize --config`
/// takes. What cannot be met is not an error: the result holds the best that was found, and no
/// model is written.
TargetResult analyze_target(const std::string& model_path, const AnalyzeOptions& options,
                            const TargetOptions& how, const Context& context = {});

/// What `analyze_statistics` did.
struct StatisticsResult {
  std::size_t layers = 0;
  std::int64_t samples = 0;
  double calibration_seconds = 0;  ///< the pass that every quantisation makes
  double seconds = 0;              ///< all of it, that pass included
};

/// Writes `save_dir`/statistic.csv and eight PDF files: every weight and activation over all
/// calibration samples, before and after quantisation.
StatisticsResult analyze_statistics(const std::string& model_path, const AnalyzeOptions& options,
                                    const Context& context = {});

}  // namespace quench
