// SPDX-License-Identifier: Apache-2.0
// Gates whose input was scaled: they are no multiples of it, so they get it back at its old size.
#pragma once

#include <string>
#include <vector>

#include "quench/model.h"

namespace quench::tune {

/// A HardSigmoid or Sigmoid, and by what each channel of its input was divided.
struct ScaledGate {
  NodeId gate = -1;
  std::vector<double> scales;
};

/// Puts the scales back in front of each gate. With a scale for each channel of a weight
/// (`by_channel`), a HardSigmoid of an image becomes a depthwise 1x1 convolution and a Clip, which
/// runtimes run as one integer node. Returns the added nodes that must stay in float.
std::vector<std::string> rescale_gates(Model& model, std::vector<ScaledGate> gates,
                                       bool by_channel);

}  // namespace quench::tune
