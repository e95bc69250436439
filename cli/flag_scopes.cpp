// SPDX-License-Identifier: Apache-2.0
// The table of flags that count for some kinds of quantisation only. A flag without a row counts
// for all.
#include "cli/flag_scopes.h"

#include <fmt/format.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "quench/error.h"

namespace quench::cli {
namespace {

bool full(const QuantizeOptions& options) { return options.type == QuantType::Full; }
bool weight(const QuantizeOptions& options) { return options.type == QuantType::Weight; }
bool dynamic(const QuantizeOptions& options) { return options.type == QuantType::Dynamic; }
bool not_dynamic(const QuantizeOptions& options) { return !dynamic(options); }
bool corrected(const QuantizeOptions& options) { return full(options) && options.bias_correction; }
bool by_channel(const QuantizeOptions& options) {
  return weight(options) || (full(options) && find_target(options.config.target).per_channel);
}
bool mixed(const QuantizeOptions& options) { return weight(options) && options.weight.bits == 0; }
bool mixed_not_sized(const QuantizeOptions& options) {
  return mixed(options) && options.weight.size_target == 0;
}
bool tuned(const QuantizeOptions& options) {
  return mixed_not_sized(options) && options.weight.auto_tune;
}
bool by_error(const QuantizeOptions& options) {
  return mixed_not_sized(options) && !tuned(options);
}

struct FlagScope {
  const char* flag;
  bool (*counts)(const QuantizeOptions& options);
  const char* scope;
};

constexpr const char* kFull = "--type full";
constexpr const char* kWeight = "--type weight";
constexpr const char* kNotDynamic = "--type full and --type weight";
constexpr const char* kMixed = "--type weight --bits 0";

constexpr FlagScope kScopes[] = {
    {"--activation-observer", full, kFull},
    {"--activation-bits", full, kFull},
    {"--hist-percent", full, kFull},
    {"--bins", full, kFull},
    {"--isa", full, kFull},
    {"--target", full, kFull},
    {"--stats", full, kFull},
    {"--equalize", full, kFull},
    {"--correction-samples", corrected, "--type full with bias correction"},
    {"--format", full, kFull},
    {"--target-metric", full, kFull},
    {"--weight-observer", not_dynamic, kNotDynamic},
    {"--weight-bits", not_dynamic, kNotDynamic},
    {"--per-channel", by_channel, "--type weight, and --type full for targets that scale channels"},
    {"--per-layer", not_dynamic, kNotDynamic},
    {"--bias-correction", not_dynamic, kNotDynamic},
    {"--no-bias-correction", not_dynamic, kNotDynamic},
    {"--held-out", not_dynamic, kNotDynamic},
    {"--bits", weight, "--type weight (--weight-bits is for --type full)"},
    {"--group-size", weight, kWeight},
    {"--symmetric", weight, kWeight},
    {"--gptq", weight, kWeight},
    {"--target-size", mixed, kMixed},
    {"--auto-tune", mixed_not_sized, "--type weight --bits 0 without --target-size"},
    {"--target-cosine", tuned, "--type weight --bits 0 --auto-tune"},
    {"--init-scale", by_error, "--type weight --bits 0 without --auto-tune and --target-size"},
    {"--strategy", dynamic, "--type dynamic"},
};

const char* name_of(QuantType type) {
  switch (type) {
    case QuantType::Weight:
      return "weight";
    case QuantType::Dynamic:
      return "dynamic";
    case QuantType::None:
    case QuantType::Full:
      break;
  }
  return "full";
}

}  // namespace

void refuse_idle_flags(const CLI::App& app, const QuantizeOptions& options) {
  for (const FlagScope& scope : kScopes) {
    if (app.get_option(scope.flag)->count() == 0 || scope.counts(options)) continue;
    throw Error(ErrorKind::Usage,
                fmt::format("{} would change nothing here: it is for {}, and this is --type {}",
                            scope.flag, scope.scope, name_of(options.type)));
  }
}

}  // namespace quench::cli
