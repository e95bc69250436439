// SPDX-License-Identifier: Apache-2.0
// The quanters that training knows by name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace quench {

/// One row of `quench list quanters`.
struct QuanterInfo {
  std::string_view name;
  std::string_view use;  ///< "weights", "activations", or both
  std::string_view summary;
};
std::vector<QuanterInfo> all_quanters();
/// Whether a quanter is called that, here or in PaddleSlim (lsq_weight, PACT).
bool is_quanter(const std::string& name);

}  // namespace quench
