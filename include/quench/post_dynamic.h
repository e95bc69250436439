// SPDX-License-Identifier: Apache-2.0
// PaddleSlim's one call for weight-only quantisation.
#pragma once

#include <string>
#include <vector>

#include "quench/quantize.h"

namespace quench {

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

}  // namespace quench
