// SPDX-License-Identifier: Apache-2.0
// What analysis finds: the error of each layer, how much each costs, and what meets a target.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace quench {

/// How far a layer of the quantised model is from the float one.
struct LayerError {
  std::string layer;  ///< node name
  std::string op_type;
  std::string value;  ///< what was compared: the layer's output, behind its activation
  double sqnr = 0;    ///< dB
  double cosine = 0;
  double mse = 0;
};

/// What quantising one layer costs.
struct LayerSensitivity {
  std::string layer;  ///< node name
  std::string op_type;
  std::string weight;        ///< name of the constant
  double metric = 0;         ///< of the model with this layer quantised, or all but this one
  double sqnr = 0;           ///< of the outputs against the float model; orders equal metrics
  std::int64_t samples = 0;  ///< it was evaluated by; less than all with `quick`
};

/// Every layer in turn.
struct SensitivityResult {
  std::string metric;
  bool higher_is_better = true;
  bool reverse = false;                  ///< all layers but one were quantised
  double float_metric = 0;               ///< nothing quantised; NaN: compared with itself
  double quantized_metric = 0;           ///< everything quantised
  std::vector<LayerSensitivity> layers;  ///< worst first; `reverse`: best to leave out first
  std::int64_t samples = 0;              ///< of the evaluation data
  std::int64_t resumed = 0;              ///< layers whose scores came from a run before
  double seconds = 0;                    ///< evaluation alone
  double calibration_seconds = 0;
  /// Layers of a quantised model that its float model does not have: they are not ranked.
  std::vector<std::string> strangers;
};

/// An interval that holds the true value with 95 % confidence.
struct Confidence {
  double low = 0;
  double high = 0;
};
/// Wilson's interval of a share in percent that was measured on `samples` samples.
Confidence wilson(double percent, std::int64_t samples);

/// A choice of layers that a search evaluated.
struct TargetTrial {
  std::size_t in_float = 0;   ///< layers
  std::size_t more_bits = 0;  ///< layers whose weights got more bits
  double value = 0;  ///< on all samples, or the most that was still possible when it was given up
};

/// What a search tried, in its order.
struct TargetTrials {
  std::string metric;
  double at_least = 0;
  std::vector<TargetTrial> trials;
};

/// The most quantised model that meets a metric.
struct TargetResult {
  std::string metric;
  double at_least = 0;
  bool met = false;
  double value = 0;       ///< on the whole evaluation set
  Confidence confidence;  ///< where the metric is a share of samples; else both are `value`
  double float_metric = 0;
  double quantized_metric = 0;             ///< with every layer quantised
  std::vector<std::string> in_float;       ///< layers left in float
  std::map<std::string, int> weight_bits;  ///< layers whose weights got more bits
  std::size_t layers = 0;
  std::int64_t tried = 0;       ///< choices that were evaluated, the final check included
  double evaluations = 0;       ///< what they took, in passes over the evaluation data: a choice
                                ///< that is clearly too bad is dropped before all were seen
  std::int64_t one_by_one = 0;  ///< passes that leaving out layers one by one would take
  std::int64_t samples = 0;
  std::vector<TargetTrial> trials;
  double seconds = 0;
};

}  // namespace quench
