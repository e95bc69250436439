// SPDX-License-Identifier: Apache-2.0
// A model that some tool has quantised, for another runtime.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "quench/evaluate.h"
#include "quench/files.h"
#include "quench/quantize.h"

namespace quench {

/// How `retarget` works.
struct RetargetOptions {
  std::string target = "onnxruntime";
  /// With a path, ranges that neither the model nor its neighbours tell are calibrated, and the
  /// result is held against the original on samples that were not used for that.
  DataOptions data;
  std::int64_t batch = 4;
  std::int64_t samples = 8;             ///< generated ones to compare with, where there are no data
  std::map<std::string, Shape> shapes;  ///< by input, where the model leaves dimensions open
  bool qoperator = false;               ///< QLinear operators instead of Q/DQ nodes
};

/// Nodes, as `lint` sees them.
struct IntegerShare {
  std::int64_t integers = 0;
  std::int64_t nodes = 0;
};

/// Something whose integers are not those of the original.
struct RetargetLoss {
  std::string name;  ///< of the value or the constant
  bool weight = false;
  double step = 1;     ///< its step over the step that it had; the largest of the channels
  double changed = 0;  ///< of a weight: the share of elements that are not the same number
};

/// What `retarget` did.
struct RetargetReport {
  std::string target;
  IntegerShare before;  ///< the original in the target's runtime
  IntegerShare after;
  std::vector<FloatLayer> float_layers;  ///< what the target runs in float, and why
  std::int64_t kept_scales = 0;          ///< activations with the integers that they had
  std::int64_t wider_scales = 0;         ///< with the range that they had, in wider steps
  std::int64_t finer_scales = 0;         ///< with the part of it that is used, in finer steps
  std::int64_t neighbour_scales = 0;     ///< had none: from what stands around them
  std::int64_t calibrated_scales = 0;    ///< had none: from data
  std::int64_t kept_weights = 0;
  std::int64_t changed_weights = 0;
  std::int64_t activations = 0;       ///< that only a scale had stood for, now nodes again
  std::vector<RetargetLoss> losses;   ///< the largest step first
  std::vector<OutputScores> outputs;  ///< the result against the original
  std::int64_t samples = 0;           ///< that these were measured on
  std::int64_t calibration_samples = 0;
  bool generated = true;  ///< they are random numbers in the range of the input's scale
  std::int64_t bytes_before = 0;
  std::int64_t bytes_after = 0;
  double seconds = 0;
  std::vector<std::string> warnings;
};

/// Reads a quantised model, whichever tool and format it is of, and writes it for a runtime. A
/// model that is not quantised, or has more bits than the target, is an Error(Unsupported).
RetargetReport retarget(const std::string& model_path, const std::string& out_path,
                        const RetargetOptions& options, const Context& context = {});
/// Leaves the file to `outputs`.
RetargetReport retarget(const std::string& model_path, const std::string& out_path,
                        const RetargetOptions& options, const Context& context, Outputs& outputs);

}  // namespace quench
