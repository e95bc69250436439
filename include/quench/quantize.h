// SPDX-License-Identifier: Apache-2.0
// Quantisation in one call: a float model and calibration data in, an 8-bit model out.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "quench/evaluate.h"
#include "quench/lower.h"
#include "quench/observer_trial.h"
#include "quench/options.h"
#include "quench/session.h"
#include "quench/statistics.h"
#include "quench/training_report.h"

namespace quench {

/// A layer left in float, and why.
struct FloatLayer {
  std::string node;
  std::string op_type;
  std::string reason;
};

/// How near a layer's result is to that of the float model, on samples not calibrated with.
struct LayerScore {
  std::string node;
  std::string op_type;
  std::string value;    ///< its result
  double own_sqnr = 0;  ///< in dB: the layer's own error, fed with the float model's values
  double own_cosine = 0;
  double accumulated_sqnr = 0;  ///< in dB: with the errors of all layers before it
  double accumulated_cosine = 0;
  double output_sqnr = 0;  ///< in dB: of the worst output, when only this layer is quantised
};

/// A step of `quantize` that makes the result more accurate.
struct TechniqueInfo {
  std::string_view name;
  std::string_view summary;
  std::string_view needs;  ///< "samples", "labels", "gradients", or nothing
  std::string_view types;  ///< of quantisation that it works for
};
/// In the order of their turns.
std::vector<TechniqueInfo> all_techniques();

/// What `quantize` did.
struct QuantizeReport {
  std::int64_t calibration_samples = 0;
  std::int64_t validation_samples = 0;
  std::int64_t integer_nodes = 0;
  std::int64_t pass_through_nodes = 0;
  std::vector<FloatLayer> float_layers;
  std::int64_t bytes_before = 0;
  std::int64_t bytes_after = 0;
  std::size_t corrected_layers = 0;
  std::size_t gptq_layers = 0;                 ///< of full quantisation: weights rounded by GPTQ
  std::size_t equalized_groups = 0;            ///< sets of values whose channels were scaled
  std::int64_t padded_layers = 0;              ///< depthwise convolutions with padded channels
  std::int64_t padded_bytes = 0;               ///< that padding added to the file
  std::string activation_observer;             ///< where no rule names one; empty: rules do
  std::vector<ObserverTrial> observer_trials;  ///< what it was chosen from
  std::int64_t observer_samples = 0;           ///< that these were tried on
  std::map<std::string, std::string> value_observers;  ///< of every activation with its own scale
  std::vector<CoarserLayer> coarser_layers;            ///< for processors without VNNI
  std::vector<OutputScores> outputs;  ///< against the float model, on samples not calibrated with
  std::vector<LayerScore> layers;     ///< of integer nodes, in the order in which they run
  std::vector<WeightChoice> weights;  ///< of weight-only and dynamic quantisation
  TrainingReport training;            ///< where the model was trained or reconstructed
  std::vector<std::string> warnings;
  double seconds = 0;
  double peak_memory_mb = 0;
  std::string settings;  ///< JSON: what `read_settings` takes
};

/// Reads `model_path`, quantises it, and writes `out_path`.
QuantizeReport quantize(const std::string& model_path, const std::string& out_path,
                        const QuantizeOptions& options, const Context& context = {});

/// What is folded into the layer before it, as PaddleSlim's `fuse` and `fuse_list` say.
struct FuseOptions {
  bool fuse = true;
  /// Chains of node names, a layer and what reads it (BatchNormalization, Mul, Add): only these are
  /// folded. Empty: all that can be.
  std::vector<std::vector<std::string>> fuse_list;
};

/// The model that quantisation works on: functions inlined, constants lifted, operators raised to
/// the version that every target needs, BatchNorm folded, types inferred. A name of the fuse list
/// that there is not, or a chain that is none, is an Error(BadConfig).
Model prepare_for_quantization(Model model, const FuseOptions& fuse = {});

/// Fixes the shapes of graph inputs; an input that is not there is an Error(Usage).
void set_input_shapes(Model& model, const std::map<std::string, Shape>& shapes);

/// Which part of the samples `calibrate_model` takes, and how it survives being stopped.
struct CalibrateOptions {
  bool resume = false;           ///< go on from FILE.partial where there is one
  double snapshot_seconds = 30;  ///< between writing that file
  /// Part `shard` of `shards`, from 1 on: the statistics of all parts together, in their order, are
  /// those of one pass.
  std::int64_t shard = 1;
  std::int64_t shards = 1;
};
/// Collects the statistics of every value that the plan wants and writes them to a file. A pass
/// that is resumed gives the same bytes as one that was never stopped; a snapshot of another model,
/// other data or other settings is an Error(BadData).
void calibrate_model(const std::string& model_path, const std::string& statistics_path,
                     const QuantizeOptions& options, const Context& context = {},
                     const CalibrateOptions& how = {});

}  // namespace quench
