// SPDX-License-Identifier: Apache-2.0
// What the integers that a model reads stand for.
#pragma once

#include <vector>

#include "quench/model.h"

namespace quench::exec {

/// Notes, in what is foreign of each 8-bit input, the scale that its DequantizeLinear has, maybe
/// behind moves: whoever has floats for such an input rounds them to it (formats/foreign.h).
void note_scales(const Graph& graph, std::vector<Value>& inputs);

}  // namespace quench::exec
