// SPDX-License-Identifier: Apache-2.0
// Values whose small numbers matter as much as large ones.
#pragma once

#include <vector>

#include "quench/model.h"

namespace quench::plan {

/// By id: whether a logarithm reads the value, at once or behind nodes that move it, clamp it or
/// combine it with a constant. Integers with one scale are evenly spaced: they would round what is
/// far below the largest number to zero, and the logarithm makes that the largest error.
std::vector<bool> read_by_logarithms(const Graph& graph);

}  // namespace quench::plan
