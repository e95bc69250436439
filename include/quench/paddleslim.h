// SPDX-License-Identifier: Apache-2.0
// PaddleSlim's calls, with its names and defaults.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "quench/analyze.h"
#include "quench/legacy_ptq.h"

namespace quench {

/// Gives tensors by the names of the model's inputs each time it is called; nothing at the end.
using Generator = std::function<std::optional<TensorMap>()>;

/// How `quant_post_static` quantises: the keys of AnalysisPTQ's `ptq_config`.
struct PtqConfig {
  std::int64_t batch_size = 1;   ///< samples a run; the result does not depend on it
  std::int64_t batch_nums = 0;   ///< batches to calibrate with; 0: all
  std::string algo = "hist";     ///< KL, hist, mse, avg, emd, abs_max, min_max, ptf
  double hist_percent = 0.9999;  ///< for `hist`
  /// Of the layers' biases, by the outputs' means; needs `data_loader`, which is read twice.
  bool bias_correction = false;
  std::string round_type = "round";  ///< "adaround" learns it, layer by layer, from `data_loader`
  /// Paddle's names or ONNX's; empty: all that the backend runs on integers.
  std::vector<std::string> quantizable_op_type = {"conv2d", "depthwise_conv2d", "conv2d_transpose",
                                                  "mul",    "matmul",           "matmul_v2"};
  bool is_full_quantize = false;  ///< every type the backend can: ignores `quantizable_op_type`
  int weight_bits = 8;
  int activation_bits = 8;
  std::string weight_quantize_type = "channel_wise_abs_max";  ///< or abs_max
  /// range_abs_max, moving_average_abs_max or abs_max. In Paddle it only picks the name of the
  /// operator written, and changes nothing here.
  std::string activation_quantize_type = "range_abs_max";
  std::vector<std::string> skip_tensor_list;  ///< nodes that touch one of these stay in float
  /// BatchNormalization is folded either way: quantising without it only costs accuracy.
  bool optimize_model = false;
  /// Of Paddle programs; false: the fake_quantize operators of older deployers.
  bool onnx_format = true;
  std::string
      deploy_backend;  ///< tensorrt, mkldnn, arm, or a target; empty: the file's own runtime
};

/// The parameters of PaddleSlim's `quant_post_static`. `executor`, `scope`, `freeze_model` and
/// `return_graph` speak of Paddle's runtime and are left out.
struct QuantPostStaticOptions : PtqConfig {
  std::string model_dir;        ///< a folder, or the model's file: Paddle's or ONNX
  std::string model_filename;   ///< the file in that folder; empty: the only model there
  std::string params_filename;  ///< the file of its parameters; empty: the one beside it
  /// A file with the extension of a format, or a folder, which is made where there is none.
  std::string quantize_model_path;
  /// In that folder; empty: model.pdmodel and model.pdiparams of a Paddle model, else model.onnx.
  std::string save_model_filename;
  std::string save_params_filename;
  /// One of three: files or samples that can be read again (`own_samples`), batches, or samples
  /// without their batch dimension from the caller's code.
  DataOptions data_loader;
  Generator batch_generator;
  Generator sample_generator;
};

/// Quantises a model in one call and writes it. `report.outputs` is empty: every sample calibrates.
QuantizeReport quant_post_static(const QuantPostStaticOptions& options,
                                 const Context& context = {});

/// The parameters of PaddleSlim's `quant_post_dynamic`, also called `quant_post_only_weight`. It
/// stores weights as integers and computes in float: for activations on integers see
/// QuantType::Dynamic.
struct QuantPostDynamicOptions {
  std::string model_dir;       ///< as for `quant_post_static`
  std::string save_model_dir;  ///< `quantized_model` and `test_model` are made in it
  std::string model_filename;
  std::string params_filename;
  std::string save_model_filename;  ///< as for `quant_post_static`
  std::string save_params_filename;
  /// conv2d, depthwise_conv2d, mul, or ONNX's names; empty: all that hold weights.
  std::vector<std::string> quantizable_op_type = {"conv2d", "mul"};
  int weight_bits = 8;               ///< Paddle: 8 or 16; here 1 to 16
  bool generate_test_model = false;  ///< also one whose weights are the dequantised floats
  std::string weight_quantize_type = "channel_wise_abs_max";  ///< or abs_max
  double threshold_rate = 0;  ///< other values are refused: ranges are not clipped by a share
};

/// Quantises the weights of a model and writes it.
QuantizeReport quant_post_dynamic(const QuantPostDynamicOptions& options,
                                  const Context& context = {});

/// The parameters of PaddleSlim's AnalysisPTQ, with its names and defaults.
struct AnalysisPtqOptions {
  std::string model_dir;  ///< as for `quant_post_static`
  std::string model_filename;
  std::string params_filename;
  /// Any number that says how good a quantised model is, higher is better. Empty: top1 where there
  /// are labels, else the SQNR against the float model.
  EvalFunction eval_function;
  DataOptions data_loader;  ///< calibration samples: files, or `own_samples`
  std::string save_dir = "analysis_results";
  bool resume = false;
  PtqConfig ptq_config;
};

/// PaddleSlim's class. Its files in `save_dir` name layers as `skip_tensor_list` takes them.
class AnalysisPTQ {
 public:
  explicit AnalysisPTQ(AnalysisPtqOptions options, Context context = {});
  StatisticsResult statistical_analyse() const;
  SensitivityResult metric_error_analyse() const;
  /// By `eval_function`, or top1 of labels: SQNR, which is of decibels, is no target.
  TargetResult get_target_quant_model(double target_metric) const;

 private:
  AnalysisPtqOptions options_;
  Context context_;
};

/// The parameters of PaddleSlim's AnalysisQAT, with its names and defaults.
struct AnalysisQatOptions {
  std::string quant_model_dir;  ///< as for `quant_post_static`; also one that other tools quantised
  std::string float_model_dir;  ///< what it was made from
  std::string model_filename;   ///< in both folders
  std::string params_filename;
  /// The layers that are looked at, by Paddle's names or ONNX's; empty: all.
  std::vector<std::string> quantizable_op_type = {"conv2d", "depthwise_conv2d", "mul"};
  std::optional<double> qat_metric;  ///< the quantised model's score, where it is known
  EvalFunction eval_function;        ///< as for AnalysisPTQ
  DataOptions data_loader;           ///< samples to evaluate with; their labels where there are any
  std::string save_dir = "analysis_results";
  bool resume = false;
};

/// PaddleSlim's class: what each layer of a quantised model costs, by its score without that
/// layer's quantisation. The most harmful comes first.
class AnalysisQAT {
 public:
  explicit AnalysisQAT(AnalysisQatOptions options, Context context = {})
      : options_(std::move(options)), context_(std::move(context)) {}
  SensitivityResult metric_error_analyse() const;

 private:
  AnalysisQatOptions options_;
  Context context_;
};

}  // namespace quench
