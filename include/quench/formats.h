// SPDX-License-Identifier: Apache-2.0
// The formats that models are read from and written to.
#pragma once

#include <string_view>
#include <vector>

namespace quench {

/// A row of the list that `quench list formats` shows.
struct FormatName {
  std::string_view name;
  std::string_view extension;
  std::string_view summary;
};
std::vector<FormatName> model_formats();

}  // namespace quench
