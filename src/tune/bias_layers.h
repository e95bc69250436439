// SPDX-License-Identifier: Apache-2.0
// Layers whose bias may move.
#pragma once

#include <string>
#include <vector>

#include "quench/plan.h"

namespace quench::tune {

/// A layer with a constant bias, or none yet where it can be given one.
struct BiasLayer {
  std::string output;     ///< its `output_name`
  std::string bias_node;  ///< that of the layer itself, or of the Add behind a MatMul
  std::size_t bias_input = 2;
  std::size_t rank = 0;  ///< of the output
  bool last = false;     ///< channels lie along the last axis; else along axis 1

  std::size_t channel_axis() const { return last ? rank - 1 : 1; }
};

/// The quantised layers of a plan, in order.
std::vector<BiasLayer> find_bias_layers(const Model& model, const QuantPlan& plan);
/// Adds one number a channel to the layer's bias.
void move_bias(Model& model, const BiasLayer& layer, const std::vector<double>& shift);

}  // namespace quench::tune
