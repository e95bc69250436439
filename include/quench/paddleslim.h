// SPDX-License-Identifier: Apache-2.0
// PaddleSlim's calls, with its names and defaults, on ONNX models.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quench/analyze.h"
#include "quench/ptq.h"

namespace quench {

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

/// The parameters of PaddleSlim's `quant_post_dynamic`, also called `quant_post_only_weight`, with
/// its names and defaults. It stores weights as integers and computes in float: for activations
/// on integers see QuantType::Dynamic.
struct QuantPostDynamicOptions {
  std::string model_dir;        ///< an ONNX file, or its folder
  std::string save_model_dir;   ///< `quantized_model` and `test_model` are made in it
  std::string model_filename;   ///< the file in that folder; empty: the only *.onnx there
  std::string params_filename;  ///< must be empty: an ONNX file names its own external data
  std::string save_model_filename = "model.onnx";
  std::string save_params_filename;  ///< must be empty, likewise
  /// conv2d, depthwise_conv2d, mul, or ONNX's names; empty: all that hold weights.
  std::vector<std::string> quantizable_op_type = {"conv2d", "mul"};
  int weight_bits = 8;               ///< Paddle: 8 or 16; here 1 to 16
  bool generate_test_model = false;  ///< also one whose weights are floats on the same grids
  std::string weight_quantize_type = "channel_wise_abs_max";  ///< or abs_max
  double threshold_rate = 0;  ///< other values are refused: ranges are not clipped by a share
};

/// Quantises the weights of a model and writes it.
QuantizeReport quant_post_dynamic(const QuantPostDynamicOptions& options,
                                  const Context& context = {});

/// The parameters of PaddleSlim's AnalysisPTQ, with its names and defaults.
struct AnalysisPtqOptions {
  std::string model_dir;        ///< an ONNX file, or its folder
  std::string model_filename;   ///< the file in that folder; empty: the only *.onnx there
  std::string params_filename;  ///< must be empty: an ONNX file names its own external data
  EvalFunction eval_function;   ///< empty: SQNR against the float model, or top1 with labels
  DataOptions data_loader;      ///< calibration samples
  std::string save_dir = "analysis_results";
  bool resume = false;
  QuantConfig ptq_config;
};

/// PaddleSlim's class: `AnalysisPTQ analysis({.model_dir = "model.onnx", ...});`.
class AnalysisPTQ {
 public:
  explicit AnalysisPTQ(AnalysisPtqOptions options, Context context = {});
  StatisticsResult statistical_analyse() const;
  SensitivityResult metric_error_analyse() const;
  TargetResult get_target_quant_model(double target_metric) const;

 private:
  AnalysisPtqOptions options_;
  Context context_;
  std::string path_;
};

}  // namespace quench
