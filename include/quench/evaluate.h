// SPDX-License-Identifier: Apache-2.0
// The jobs behind the commands: describe, evaluate, compare and time models.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "quench/data.h"
#include "quench/metrics.h"
#include "quench/session.h"

namespace quench {

/// What `quench inspect` shows.
struct ModelSummary {
  std::string path;
  std::int64_t bytes_on_disk = 0;  ///< with external data
  std::int64_t ir_version = 0;
  std::map<std::string, std::int64_t> opsets;
  std::string producer;
  std::vector<Value> inputs;
  std::vector<Value> outputs;
  std::map<std::string, std::int64_t> op_counts;  ///< "Conv", "com.microsoft.FusedConv"
  std::int64_t num_nodes = 0;
  std::int64_t num_parameters = 0;
  struct WeightBytes {
    std::int64_t tensors = 0;
    std::int64_t elements = 0;
    std::int64_t bytes = 0;
  };
  std::map<std::string, WeightBytes> weights_by_type;
  std::vector<UnsupportedNode> unsupported;
  /// Quantised tensors of files that say scales beside their graph (.ms).
  struct TensorScales {
    std::string tensor;
    std::string type;
    std::string scales;  ///< "8 bits, scale 0.02, zero point 3"
  };
  std::vector<TensorScales> scales;
};
ModelSummary inspect(const std::string& path);

/// Inputs drawn from a seeded generator, where there is no data.
struct RandomInputs {
  std::int64_t samples = 16;
  std::map<std::string, Shape> shapes;  ///< by input, where the model leaves dimensions open
};

/// How `evaluate` and `compare` run.
struct EvaluateOptions {
  DataOptions data;                  ///< `compare` draws random inputs when the path is empty
  RandomInputs random;               ///< used by `compare` only
  std::vector<std::string> metrics;  ///< empty: top1 and top5 with labels, else the reference ones
  CustomMetrics custom_metrics;      ///< besides; `evaluate` only
  std::string reference;             ///< a model whose outputs are the expected ones
  std::string output;                ///< the output to score; empty: the first, or all of them
  std::int64_t batch = 8;            ///< a model with a fixed batch keeps its own
  Dequantize dequantize = Dequantize::AtLoad;
  Rounding rounding = Rounding::Once;
};

/// Metric values of one output (or, for `compare`, of one layer).
struct OutputScores {
  std::string output;
  std::map<std::string, double> scores;
};
struct EvaluateResult {
  std::int64_t samples = 0;
  std::int64_t batch = 0;
  double seconds = 0;  ///< reading the data included, loading the model not
  std::vector<OutputScores> outputs;
};
EvaluateResult evaluate(const std::string& model_path, const EvaluateOptions& options,
                        const Context& context = {});

struct CompareResult {
  std::int64_t samples = 0;
  std::vector<OutputScores> outputs;
  std::vector<OutputScores> layers;  ///< values that both models have under one name, in run order
  std::int64_t padded = 0;           ///< layers whose padding was left out, as the file told
  std::int64_t equalized = 0;        ///< layers whose equalisation was undone, as the file told
};
/// `path_b` is the reference that `path_a` is measured against.
CompareResult compare(const std::string& path_a, const std::string& path_b,
                      const EvaluateOptions& options, const Context& context = {});

struct BenchOptions {
  std::int64_t batch = 1;
  int warmup = 3;
  int runs = 30;
  double max_seconds = 10;              ///< stops early after at least 3 runs
  std::map<std::string, Shape> shapes;  ///< by input, where the model leaves dimensions open
  bool profile = false;                 ///< fills BenchResult::steps
  Dequantize dequantize = Dequantize::AtLoad;
};
/// One step of a profiled model.
struct BenchStep {
  std::string node;
  std::string op_type;
  double start_ms = 0;  ///< in the last run
  double ms = 0;        ///< likewise
  double mean_ms = 0;   ///< over all timed runs
};
struct BenchResult {
  std::string model;
  std::int64_t batch = 0;
  int threads = 0;
  int runs = 0;
  double median_ms = 0;
  double p95_ms = 0;
  double min_ms = 0;
  double samples_per_second = 0;
  double load_ms = 0;      ///< from file to a session that is ready
  double peak_rss_mb = 0;  ///< above what the process held before the model was loaded
  std::vector<BenchStep> steps;
};
BenchResult bench(const std::string& model_path, const BenchOptions& options,
                  const Context& context = {});

}  // namespace quench
