// SPDX-License-Identifier: Apache-2.0
// The flags that quench quantize and quench calibrate have in common, and the options they make.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/common.h"
#include "cli/data_flags.h"
#include "cli/weight_flags.h"
#include "quench/files.h"
#include "quench/quantize.h"

namespace quench::cli {

/// A switch with two sides, such as --per-channel and --per-layer; neither: as it was.
struct Sides {
  bool on = false;
  bool off = false;
  /// Sets the field where a side was chosen.
  template <typename Field>
  void apply(Field& field) const {
    if (on) field = true;
    if (off) field = false;
  }
};

/// What changes from settings, a configuration file or the defaults, flag by flag.
struct QuantizeFlags {
  std::string model;
  std::string out;
  std::string config;
  std::string settings;
  std::vector<std::string> statistics;
  std::vector<std::string> rules;
  std::vector<std::string> skip_nodes;
  std::vector<std::string> skip_tensors;
  std::vector<std::string> op_types;
  std::vector<std::string> shapes;
  std::optional<std::string> target;
  std::optional<std::string> isa;
  std::optional<std::string> activation;
  std::optional<std::string> weight;
  std::optional<int> activation_bits;
  std::optional<int> weight_bits;
  std::optional<double> hist_percent;
  std::optional<int> bins;
  std::optional<std::string> format;
  std::optional<std::int64_t> min_weight_size;
  std::optional<std::int64_t> min_weight_channel;
  std::optional<std::int64_t> batch;
  std::optional<std::int64_t> held_out;
  std::optional<std::int64_t> correction_samples;
  Sides per_channel;
  std::string bias_correction;
  bool no_bias_correction = false;
  std::string equalize;
  WeightFlags weights;
  bool no_metadata = false;
  DataFlags data;
  CommonFlags common;
};

/// Flags of both verbs: the model, the data, and what decides which values are observed.
void add_shared_flags(CLI::App& app, QuantizeFlags& flags, const char* out_help);
/// Flags of quench quantize alone: how grids are chosen and what is written.
void add_quantize_flags(CLI::App& app, QuantizeFlags& flags);

/// Settings, then the configuration file, then the flags.
QuantizeOptions options_of(const QuantizeFlags& flags);
/// Tells `outputs` which files say how to quantise.
void reads_configuration(Outputs& outputs, const QuantizeFlags& flags);

}  // namespace quench::cli
