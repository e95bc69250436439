// SPDX-License-Identifier: Apache-2.0
// How far each layer of a quantised model is from the float one.
#pragma once

#include <span>

#include "quench/analysis.h"
#include "quench/plan.h"
#include "quench/session.h"

namespace quench::analyze {

/// A layer and the value to compare.
struct ComparedValue {
  std::string layer;
  std::string op_type;
  std::string value;
};

/// What a plan's layers make, in run order.
std::vector<ComparedValue> compared_values(const Model& model, const QuantPlan& plan);

/// Runs both models on every batch. Errors add up along the network: each layer sees quantised
/// inputs. A value that is not a float tensor in both is passed over.
std::vector<LayerError> layer_errors(const Model& model, const Model& quantized,
                                     const std::vector<ComparedValue>& values,
                                     std::span<const TensorMap> batches, const Context& context);

}  // namespace quench::analyze
