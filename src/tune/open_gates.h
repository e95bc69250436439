// SPDX-License-Identifier: Apache-2.0
// HardSwish taken apart into a product with its gate, which channels can be scaled across.
#pragma once

#include <string>
#include <vector>

#include "quench/model.h"

namespace quench::tune {

/// A HardSwish as it stood; its values by name, since ids change.
struct OpenedGate {
  Node node;
  std::string input;
  std::string output;
};

/// Writes every HardSwish(x) as x * HardSigmoid(x), under its names.
std::vector<OpenedGate> open_gates(Model& model);
/// Puts those back whose gate still reads what their product does.
void close_gates(Model& model, const std::vector<OpenedGate>& opened);

}  // namespace quench::tune
