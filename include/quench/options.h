// SPDX-License-Identifier: Apache-2.0
// What a quantisation can be asked for, and how that is stored.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "quench/data.h"
#include "quench/quant_config.h"
#include "quench/weight_quant.h"

namespace quench {

/// How biases make up for the mean error of their layers.
enum class BiasCorrection {
  Fast,  ///< from the rounding of weights and the mean of what each layer reads
  Full,  ///< layer by layer, each behind quantised and corrected ones
  Auto,  ///< fast, and full where the SQNR of a layer is below 30 dB
};
/// Whether channels between layers are scaled to share one scale.
enum class Equalization {
  Never,
  Always,
  Auto,  ///< per-tensor weights and gates: where the validation set gets nearer to float
};

/// How `quantize` works.
struct QuantizeOptions {
  QuantType type = QuantType::Full;
  QuantConfig config;
  WeightQuantOptions weight;    ///< for QuantType::Weight
  DynamicQuantOptions dynamic;  ///< for QuantType::Dynamic
  DataOptions data;             ///< calibration samples
  /// Files of `calibrate`: no data pass is made. Several are merged, as if their samples followed
  /// one another.
  std::vector<std::string> statistics;
  std::int64_t batch = 4;      ///< samples a run; the result does not depend on it
  std::int64_t held_out = 16;  ///< at most this many samples, and a fifth, are the validation set
  bool bias_correction = true;
  BiasCorrection correction = BiasCorrection::Auto;
  Equalization equalization = Equalization::Auto;
  std::int64_t correction_samples = 16;
  bool pad_channels = true;  ///< depthwise convolutions, to what the target's kernels take at once
  bool qoperator = false;    ///< QLinearConv and its like instead of Q/DQ
  std::map<std::string, Shape> input_shapes;  ///< set before anything else, by input
  std::int64_t min_quant_weight_size = 0;     ///< layers whose weight is not larger stay in float
  std::int64_t min_quant_weight_channel = 0;  ///< likewise convolutions, by output channels
  std::string debug_info_save_path;           ///< folder for tables of every layer's error
  std::string report_save_path;               ///< HTML page that shows the model that was written
  bool store_settings = true;                 ///< in the model's metadata, to be run again
  std::vector<std::string> notes;  ///< of `read_config`: what the file says without effect
  std::vector<std::string> notes_unless_packed;  ///< likewise, unless the result is a packed file
};

/// The settings as JSON; where they hold for `threads`, the seed and the like is in the Context.
std::string settings_json(const QuantizeOptions& options);
/// The settings stored in a report of `quench quantize --json` or in the metadata of a model that
/// it wrote: `quantize` with them gives the same bytes. Throws Error(BadConfig) that names the key.
QuantizeOptions read_settings(const std::string& path);

}  // namespace quench
