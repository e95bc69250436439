// SPDX-License-Identifier: Apache-2.0
// Keys of converter_lite where it has them, and all settings beside these.
#include "options/config_text.h"

#include <algorithm>

#include "base/format.h"
#include "base/ini.h"

namespace quench::options {
namespace {

/// Whether a list in an INI file can hold the name.
bool can_be_listed(const std::string& name) {
  return name.find_first_of(",=\"\r\n") == std::string::npos && !name.empty() &&
         name.front() > ' ' && name.back() > ' ';
}

}  // namespace

std::string config_text(const QuantizeOptions& options) {
  const bool weight = options.type == QuantType::Weight;
  const char* type = weight                               ? "WEIGHT_QUANT"
                     : options.type == QuantType::Dynamic ? "DYNAMIC_QUANT"
                                                          : "FULL_QUANT";
  std::string text = format(
      "[quench_param]\nsettings={}\n[common_quant_param]\nquant_type={}\n"
      "bit_num={}\n",
      ini_escaped(settings_json(options)), type, weight ? options.weight.bits : 8);
  // Unsaid it would be converter_lite's own, which depends on the type.
  text += format("min_quant_weight_size={}\nmin_quant_weight_channel={}\n",
                 options.min_quant_weight_size, options.min_quant_weight_channel);
  const std::vector<std::string>& names = options.config.skip_quant_node;
  if (!std::ranges::all_of(names, can_be_listed)) {
    text += "# skip_quant_node is in the settings: commas part names here\n";
  } else if (!names.empty()) {
    text += format("skip_quant_node={}\n", fmt::join(names, ","));
  }
  return text;
}

}  // namespace quench::options
