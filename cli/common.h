// SPDX-License-Identifier: Apache-2.0
// Flags that mean the same in every verb, and the Context they make.
#pragma once

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <cstdint>
#include <string>

#include "cli/help_flags.h"
#include "cli/progress.h"
#include "quench/context.h"
#include "quench/session.h"

namespace quench::cli {

struct CommonFlags {
  bool json = false;
  bool quiet = false;
  bool verbose = false;
  int threads = 0;
  std::string max_isa;  ///< empty: what the machine has
  std::uint64_t seed = 0;
  std::uint64_t max_memory = 0;  ///< bytes; 0: no ceiling
  std::string device = "cpu";
  std::string precision = "float";
  bool distributed = false;
  bool elastic = false;
  double rank_timeout = 0;  ///< seconds; 0: as RankOptions has it
};

/// Which of the common flags make sense for a verb.
enum class Work { Reads, Converts, Runs, Shares };

/// Adds --json and --quiet; where models are run --threads, --max-isa, --seed and --verbose too,
/// for a verb whose work that is --device, and for one that several processes can share
/// --distributed.
void add_common_flags(CLI::App& app, CommonFlags& flags, Work work);

/// Adds --elastic, to a verb that has --distributed.
void add_elastic_flag(CLI::App& app, CommonFlags& flags);

/// Adds the model that a verb reads, with --model-filename and --params-filename; `path` must
/// outlive the parsing.
CLI::Option* add_model(CLI::App& app, std::string& path);

/// Adds --dequant; `value` must outlive the parsing.
void add_dequant_flag(CLI::App& app, Dequantize& value);
void add_rounding_flag(CLI::App& app, Rounding& value);

/// Shows in the help what holds where the flag is left out: `value` is the default itself, so that
/// the two cannot differ.
template <typename T>
CLI::Option* with_default(CLI::Option* option, const T& value) {
  return option->default_str(fmt::format("{}", value));
}

/// A sub-command whose help ends with an example that a test runs.
CLI::App* add_verb(CLI::App& root, const char* name, const char* summary, const char* example);

/// What the user typed, as a shell would take it again; `main` says it once.
void remember_command(int argc, char** argv);
const std::string& typed_command();

/// A Context with the flags applied, that draws on `bar` and stops at Ctrl-C.
Context make_context(const CommonFlags& flags, ProgressBar& bar);

}  // namespace quench::cli
