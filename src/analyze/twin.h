// SPDX-License-Identifier: Apache-2.0
// A float model and its quantised self in one graph, so that one pass sees both and the difference.
#pragma once

#include <string>
#include <vector>

#include "quench/model.h"

namespace quench::analyze {

/// The names of one value in a twin.
struct TwinValue {
  std::string value;       ///< in the float model
  std::string in_float;    ///< in the twin
  std::string quantized;   ///< as readers of the quantised graph see it
  std::string difference;  ///< quantised less float
};

struct Twin {
  Model model;
  std::vector<TwinValue> values;
};

/// Both graphs over the same inputs, with a subtraction for each of `values`. Throws
/// Error(Unsupported) when a node holds a graph of its own.
Twin make_twin(const Model& model, const Model& quantized, const std::vector<std::string>& values);

}  // namespace quench::analyze
