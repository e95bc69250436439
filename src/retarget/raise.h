// SPDX-License-Identifier: Apache-2.0
// The opposite of lowering: a quantised model as a float graph, and the scale of what had one.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "quench/model.h"
#include "quench/quant.h"

namespace quench::retargeting {

/// An input or output of the model that is integers. In the raised graph it is what they stand for.
struct IntegerEdge {
  std::string name;
  QuantParams params;
  bool is_output = false;
};

/// A quantised model, taken apart.
struct Raised {
  Model model;                                 ///< floats, with the names that values had
  std::map<std::string, QuantParams> values;   ///< of activations, by name
  std::map<std::string, QuantParams> weights;  ///< of float constants that were integers, by name
  std::vector<IntegerEdge> edges;
  /// Results of activations that came back as nodes: their scale had stood for them.
  std::set<std::string> activations;
  std::size_t dynamic = 0;      ///< layers whose input was quantised while the model ran
  std::size_t requantised = 0;  ///< values that had a second, other scale, which is left out
};

/// Takes Q/DQ, QLinear and dynamically quantised nodes out of a model, whoever wrote them. What has
/// scales in blocks stays or becomes float.
Raised raise(Model quantized);

}  // namespace quench::retargeting
