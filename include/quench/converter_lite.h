// SPDX-License-Identifier: Apache-2.0
// converter_lite's configuration files.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quench/option_table.h"

namespace quench {

/// `base` with the settings of a converter_lite INI file laid over it, and with its defaults where
/// neither says anything. Every section or key that is not known, and every ill-typed value, is
/// told in one Error(BadConfig), a line each that opens with "path:line: "; Error(Unsupported)
/// where the file is right and asks for what is not done.
/// `override`, where there is one, is laid over the result before it is told what has no effect.
QuantizeOptions read_config(const std::string& ini_path, QuantizeOptions base = {},
                            const std::function<void(QuantizeOptions&)>& override = {});

/// A key of an INI file that says how to quantise.
struct ConverterKey {
  std::string section;
  std::string key;
  const Option* option = nullptr;  ///< what it sets; null: nothing
  /// Its words for the option's values, and ours; empty where both are the same.
  std::vector<std::pair<std::string, std::string>> words;
  std::string idle;  ///< why, or when, it changes nothing
};
/// Every such key, in the order of the table of options.
std::vector<ConverterKey> converter_keys();

/// A message with the keys of INI files in place of flags; flags that they have no key for are
/// said to be those of quench quantize.
std::string in_converter_words(std::string_view message);

}  // namespace quench
