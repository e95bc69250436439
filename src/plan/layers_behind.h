// SPDX-License-Identifier: Apache-2.0
// How far values are from the outputs.
#pragma once

#include <map>
#include <string>

#include "quench/model.h"

namespace quench::plan {

/// By name of each value that leads to an output: the least number of nodes on the way that add
/// elements up (layers, pools, normalisations). In each of them one clipped element is one of many.
/// With none behind it an element is a result or decides one: nodes that only move elements or
/// change each by itself hand its error on.
std::map<std::string, int> layers_behind(const Graph& graph);

}  // namespace quench::plan
