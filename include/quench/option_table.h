// SPDX-License-Identifier: Apache-2.0
// The options of a quantisation as a table: names, values, help, and what others call them.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "quench/options.h"

namespace quench {

/// The commands that take an option; several are or-ed.
inline constexpr unsigned kForQuantize = 1;
inline constexpr unsigned kForCalibrate = 2;
inline constexpr unsigned kForAnalyze = 4;
inline constexpr unsigned kForSamples = 8;  ///< commands that only read samples: eval, compare
inline constexpr unsigned kForTrain = 16;

/// What an option's value is.
enum class OptionKind { Switch, Whole, Number, Word, Text, List, Numbers, Size, Shapes, Other };

/// The quantisations that an option changes.
struct OptionScope {
  bool (*counts)(const QuantizeOptions& options) = nullptr;  ///< null: all
  std::string_view words;                                    ///< in the words of a command line
};

/// All that is known of an option.
struct Option {
  std::string_view name;   ///< "skip-node": --skip-node on a command line, "skip_node" as a key
  std::string_view value;  ///< what stands for its value in the help; empty: a switch
  std::string_view help;
  std::vector<std::string> choices;  ///< the words that it takes; empty: any
  std::string_view list;             ///< the kind of `quench list` whose names it takes
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool open = false;            ///< the two limits themselves are refused
  std::string_view by_default;  ///< where the options do not say it themselves
  unsigned jobs = 0;            ///< commands that take it; none: only files set it
  OptionScope scope;
  std::string_view group;   ///< a heading of the help
  bool basic = false;       ///< what most people need: the short help shows it
  std::string_view ini;     ///< converter_lite's "section.key", or "section.key=value"
  std::string_view paddle;  ///< what PaddleSlim calls it
  std::string_view bare;    ///< the value where it is given without one
  std::string_view one_of;  ///< of the options with the same word here, only one may be given
  bool many = false;        ///< may be given several times
  bool alias = false;       ///< another way to say what other options hold
  // Told from the member that it sets.
  std::string_view setting;  ///< its place in stored settings; empty: not stored
  OptionKind kind = OptionKind::Other;
};

/// Every option, in the order in which they are laid over each other.
const std::vector<Option>& all_options();
/// By name, with '-' or '_'. Throws Error(Usage) with the nearest.
const Option& find_option(std::string_view name);

/// Sets an option from text, as a command line has it: no word for a switch that is turned on,
/// several for a list. Throws Error(Usage) that names the option, what it takes and what it got.
void set_option(QuantizeOptions& options, std::string_view name,
                const std::vector<std::string>& words);
/// The value as text that `set_option` takes; empty where there is none.
std::string option_text(const QuantizeOptions& options, std::string_view name);

/// What an option takes, in words: "a whole number from 0 to 16".
std::string option_takes(const Option& option);

/// Throws Error(Usage) for the first of the options that changes nothing given all the others,
/// saying what it is for.
void refuse_idle_options(const std::vector<std::string_view>& given,
                         const QuantizeOptions& options);

/// The names between commas; "\," is a comma within a name.
std::vector<std::string> split_names(std::string_view text);

}  // namespace quench
