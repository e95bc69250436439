// SPDX-License-Identifier: Apache-2.0
// What a quantisation can be asked for, and how that is stored.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "quench/data.h"
#include "quench/quant_config.h"
#include "quench/training.h"
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

using InputShapes = std::map<std::string, Shape>;

/// How `quantize` works.
struct QuantizeOptions {
  QuantType type = QuantType::Full;
  QuantConfig config;
  WeightQuantOptions weight;    ///< for QuantType::Weight
  DynamicQuantOptions dynamic;  ///< for QuantType::Dynamic
  DataOptions data;             ///< calibration samples
  TrainingOptions training;
  // What the table of options holds beside these, each with its default.
#define QUENCH_TRANSIENT(...)
#define QUENCH_ALIAS(...)
#define QUENCH_OPTION(type, member, value, ...) type member = value;
#include "quench/options.inc"
#undef QUENCH_OPTION
#undef QUENCH_ALIAS
#undef QUENCH_TRANSIENT
  std::string debug_info_save_path;  ///< folder for tables of every layer's error
  std::int64_t debug_samples = 0;    ///< in those tables; 0: what takes no longer than two passes
  std::string report_save_path;      ///< HTML page that shows the model that was written
  std::string command;               ///< what the user typed, for that page
  bool store_settings = true;        ///< in the model's metadata, to be run again
  std::vector<std::string> notes;    ///< of `read_config`: what the file says without effect
  std::vector<std::string> notes_unless_packed;  ///< likewise, unless the result is a packed file
};

/// The settings as JSON; where they hold for `threads`, the seed and the like is in the Context.
std::string settings_json(const QuantizeOptions& options);
/// The settings stored in a report of `quench quantize --json` or in the metadata of a model that
/// it wrote: `quantize` with them gives the same bytes. Throws Error(BadConfig) that names the key.
QuantizeOptions read_settings(const std::string& path);

}  // namespace quench
