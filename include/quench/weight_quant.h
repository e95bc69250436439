// SPDX-License-Identifier: Apache-2.0
// Settings of weight-only and of dynamic quantisation, with converter_lite's names and defaults.
#pragma once

#include <cstdint>
#include <string>

namespace quench {

/// What `quantize` makes of a model.
enum class QuantType {
  None,     ///< nothing: a configuration file that names no quant_type
  Full,     ///< weights and activations, with calibration data
  Weight,   ///< weights only: a smaller file that computes in float
  Dynamic,  ///< weights, and activations whose scale is found while the model runs
};

/// When the stored integers become floats again.
enum class DequantStrategy { AtLoad, OnTheFly };

/// Settings of QuantType::Weight. `QuantizeOptions::min_quant_weight_size` and
/// `min_quant_weight_channel` say which weights are too small.
struct WeightQuantOptions {
  int bits = 8;                  ///< 1 to 16; 0: mixed, as many as each weight needs
  double init_scale = 0.02;      ///< mixed: the size, as the error of fixed bits; above 0, below 1
  bool auto_tune = false;        ///< mixed: search the error that `cosine_target` allows
  double cosine_target = 0.995;  ///< of the outputs, for `auto_tune`
  int max_iterations = 40;       ///< of that search
  double size_target = 0;        ///< mixed: the share of the float weights to fit in; 0: none
  bool enable_encode = true;     ///< store indices, sparse or packed bits where that is smaller
  int max_segments = 1;          ///< pieces of an entropy-coded stream, to be decoded in parallel
  DequantStrategy dequant_strategy = DequantStrategy::AtLoad;
  bool per_channel = true;
  bool symmetric = false;
  std::int64_t group_size = 0;  ///< one scale for so many weights of a channel; 0: for them all
  bool bias_correction = true;  ///< keep each channel's mean and spread
  std::string observer;         ///< abs_max or mse; empty: mse below 8 bits
  bool gptq = false;            ///< round by what the layer's inputs look like; needs data
};

/// How one weight is stored.
struct WeightChoice {
  std::string node;     ///< the first that reads it
  std::string op_type;  ///< of that node
  std::string weight;   ///< the constant
  int bits = 0;         ///< that its integers need
  std::int64_t elements = 0;
  std::int64_t bytes = 0;  ///< integers, scales and zero points
  double error = 0;        ///< root of the squared error over the squared weight
  std::string method;      ///< how it was rounded: "abs_max", "mse", "step" or "gptq"
};

/// Settings of QuantType::Dynamic.
struct DynamicQuantOptions {
  enum class Strategy {
    ALWC,  ///< activations by layer, weights by channel
    ACWL,  ///< activations by channel (row), weights by layer
  };
  Strategy quant_strategy = Strategy::ALWC;
};

}  // namespace quench
