// SPDX-License-Identifier: Apache-2.0
// The error of each integer layer: its own, and with those of the layers before it.
#pragma once

#include "tune/state.h"

namespace quench::analyze {

/// Its own error: the layer is fed with the float model's values. Accumulated: all of `quantized`
/// runs. Results are taken as their readers see them. In the order in which they run; empty where
/// there is no validation set.
std::vector<LayerScore> score_layers(const tune::State& state, const Model& quantized);

}  // namespace quench::analyze
