// SPDX-License-Identifier: Apache-2.0
// Full quantisation in steps from C++, and PaddleSlim's one call for it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quench/quantize.h"

namespace quench {

/// A float model that watches its activations while it runs. Made by `PTQ::quantize`.
class ObservedModel {
 public:
  ~ObservedModel();
  ObservedModel(ObservedModel&&) noexcept;
  ObservedModel& operator=(ObservedModel&&) noexcept;

  /// Runs a batch of any size, adds it to the statistics and returns the float outputs. A run that
  /// throws leaves the statistics as they were.
  TensorMap run(const TensorMap& batch);
  /// Adds what was seen elsewhere, such as a file of `calibrate_model`; it counts as later samples.
  void merge(const StatisticMap& statistics);

  StatisticMap statistics() const;
  const Model& model() const noexcept;  ///< prepared: what the plan speaks of
  const QuantPlan& plan() const noexcept;
  const std::vector<Value>& inputs() const noexcept;  ///< what `run` must be fed with

 private:
  friend class PTQ;
  struct State;
  explicit ObservedModel(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// PaddleSlim's flow: `PTQ ptq(config); auto observed = ptq.quantize(model);` then
/// `observed.run(batch)` for every batch, then `save(ptq.convert(observed), path)`.
class PTQ {
 public:
  explicit PTQ(QuantConfig config = {}, Context context = {});

  /// Plans the quantisation and opens a session that observes. A name in the configuration that
  /// matches nothing is an Error that suggests the nearest.
  ObservedModel quantize(const Model& model, const FuseOptions& fuse = {}) const;
  /// The model with its Q/DQ nodes; `observed` may go on observing.
  Model convert(const ObservedModel& observed) const;
  const QuantConfig& config() const noexcept { return config_; }

 private:
  QuantConfig config_;
  Context context_;
};

/// A quantiser of PaddleSlim's legacy `PTQ(activation_quantizer, weight_quantizer)`.
struct LegacyQuantizer {
  std::string observer;
  int quant_bits = 8;
  int bins = 1024;
  double hist_percent = 0.99999;
};
/// PaddleSlim's `upsample_bins` has no place here: histograms are merged without loss.
struct KLQuantizer : LegacyQuantizer {
  explicit KLQuantizer(int bits = 8, int num_bins = 1024);
};
struct HistQuantizer : LegacyQuantizer {
  explicit HistQuantizer(int bits = 8, int num_bins = 1024, double percent = 0.99999);
};
struct AbsmaxQuantizer : LegacyQuantizer {
  explicit AbsmaxQuantizer(int bits = 8);
};
/// For weights.
struct PerChannelAbsmaxQuantizer : LegacyQuantizer {
  explicit PerChannelAbsmaxQuantizer(int bits = 8);
};
/// By name, with default settings; throws Error(Usage) with the nearest.
LegacyQuantizer legacy_quantizer(std::string_view name);
/// The configuration that legacy quantisers stand for. Throws Error(Usage) where one cannot do what
/// it is asked to: KL and Hist take activations, PerChannelAbsmax weights, Absmax both.
QuantConfig legacy_config(const LegacyQuantizer& activation = KLQuantizer(),
                          const LegacyQuantizer& weight = PerChannelAbsmaxQuantizer());

/// The parameters of PaddleSlim's `quant_post_static`, with its names and defaults. `executor`,
/// `scope`, `freeze_model` and `return_graph` speak of Paddle's runtime and are left out.
struct QuantPostStaticOptions {
  std::string model_dir;        ///< an ONNX file, or its folder
  std::string model_filename;   ///< the file in that folder; empty: the only *.onnx there
  std::string params_filename;  ///< must be empty: an ONNX file names its own external data
  std::string save_model_path;  ///< a file that ends in .onnx, or an existing folder
  std::string save_model_filename = "model.onnx";  ///< where `save_model_path` is a folder
  DataOptions data_loader;                         ///< samples: images, arrays, IDX files
  /// Or batches from the caller's code; nothing at the end.
  std::function<std::optional<TensorMap>()> batch_generator;
  std::int64_t batch_size = 1;   ///< for `data_loader`; the result does not depend on it
  std::int64_t batch_nums = 0;   ///< batches to calibrate with; 0: all
  std::string algo = "hist";     ///< KL, hist, mse, avg, emd, abs_max, min_max
  double hist_percent = 0.9999;  ///< for `hist`
  /// Of the layers' biases, by the outputs' means; needs `data_loader`.
  bool bias_correction = false;
  std::string round_type = "round";  ///< "adaround" is refused
  /// Paddle's names (conv2d, matmul_v2...) or ONNX's; empty: all that the backend runs on integers.
  std::vector<std::string> quantizable_op_type;
  bool is_full_quantize = false;  ///< every type the backend can: ignores `quantizable_op_type`
  int weight_bits = 8;
  int activation_bits = 8;
  std::string weight_quantize_type = "channel_wise_abs_max";  ///< or abs_max
  /// range_abs_max, moving_average_abs_max or abs_max. In Paddle it only picks the name of the
  /// operator written; Q/DQ nodes have one, so it changes nothing here.
  std::string activation_quantize_type = "range_abs_max";
  std::vector<std::string> skip_tensor_list;  ///< nodes that touch one of these stay in float
  /// BatchNormalization is always folded: quantising without it only costs accuracy.
  bool optimize_model = true;
  bool onnx_format = true;     ///< false is refused: the old format exists only for Paddle programs
  std::string deploy_backend;  ///< tensorrt, mkldnn, arm, or a target; empty: onnxruntime
};

/// Quantises a model in one call and writes it. `report.outputs` is empty: every sample calibrates.
QuantizeReport quant_post_static(const QuantPostStaticOptions& options,
                                 const Context& context = {});

}  // namespace quench
