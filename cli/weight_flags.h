// SPDX-License-Identifier: Apache-2.0
// Flags of weight-only and dynamic quantisation, and what is printed of them.
#pragma once

#include <CLI/App.hpp>
#include <optional>
#include <string>

#include "cli/json.h"
#include "quench/quantize.h"

namespace quench::cli {

struct WeightFlags {
  std::string type;
  std::optional<int> bits;
  std::optional<std::int64_t> group_size;
  bool symmetric = false;
  bool gptq = false;
  std::optional<double> init_scale;
  bool auto_tune = false;
  std::optional<double> target_cosine;
  std::optional<double> target_size;
  std::string strategy;
};

void add_weight_flags(CLI::App& app, WeightFlags& flags);
/// Lays the flags over the options.
void apply(const WeightFlags& flags, QuantizeOptions& options);

Json weights_json(const QuantizeReport& report);
void print_weights(const QuantizeReport& report);

}  // namespace quench::cli
