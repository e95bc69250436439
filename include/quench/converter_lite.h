// SPDX-License-Identifier: Apache-2.0
// converter_lite's configuration files.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quench/model.h"
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

/// A flag of converter_lite's command line.
struct ConverterFlag {
  std::string_view name;
  std::string_view value;  ///< what stands for its value in the help
  std::string_view help;
  std::vector<std::string> done;   ///< words that are done here
  std::vector<std::string> known;  ///< words that converter_lite takes and Quench does not
  std::string_view reason;         ///< why not
  bool required = false;
};
const std::vector<ConverterFlag>& converter_flags();
/// Values by the names of flags; empty: not given.
using ConverterFlags = std::map<std::string, std::string>;

/// The options that a command line and its INI file ask for. Throws Error(Usage) for what
/// converter_lite would refuse too, Error(Unsupported) for what is not done here.
QuantizeOptions converter_options(const ConverterFlags& flags);
/// The model that the command line names, as `load` takes it: with --weightFile for Caffe. Throws
/// Error(Usage) where the file is not of the format that --fmk says.
std::string converter_model(const ConverterFlags& flags);
/// What the command line asks of a model that is written without quantisation: --inputDataFormat,
/// --fp16.
void edit_model(Model& model, const ConverterFlags& flags);
/// The file that the command line names: converter_lite adds its suffix to whatever it is given,
/// and so is .onnx added, or .qnch for mixed bits, which are few only in a packed file.
std::string converter_output(const ConverterFlags& flags, const QuantizeOptions& options);

/// A message with the keys of INI files in place of flags; flags that they have no key for are
/// said to be those of quench quantize.
std::string in_converter_words(std::string_view message);

}  // namespace quench
