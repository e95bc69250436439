// SPDX-License-Identifier: Apache-2.0
// The flags that quench quantize and quench calibrate have in common, and the options they make.
#include "cli/quantize_flags.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <map>

#include "cli/parse.h"
#include "cli/rules.h"
#include "quench/converter_lite.h"

namespace quench::cli {
namespace {

template <typename T>
void assign(T& field, const std::optional<T>& flag) {
  if (flag) field = *flag;
}

void apply_lists(const QuantizeFlags& flags, QuantizeOptions& options) {
  QuantConfig& config = options.config;
  if (!flags.skip_nodes.empty()) config.skip_quant_node = split_list(flags.skip_nodes);
  if (!flags.skip_tensors.empty()) config.skip_tensor_list = split_list(flags.skip_tensors);
  if (!flags.op_types.empty()) config.quantizable_op_type = split_list(flags.op_types);
  if (!flags.statistics.empty()) options.statistics = flags.statistics;
  if (!flags.shapes.empty()) options.input_shapes = parse_shapes("--shape", flags.shapes);
  for (const std::string& rule : flags.rules) add_rule(rule, config);
}

void apply_config(const QuantizeFlags& flags, QuantConfig& config) {
  assign(config.target, flags.target);
  assign(config.isa, flags.isa);
  if (flags.activation) config.global.activation_observer = *flags.activation;
  if (flags.weight) config.global.weight_observer = *flags.weight;
  if (flags.activation_bits) config.global.activation_bits = *flags.activation_bits;
  if (flags.weight_bits) config.global.weight_bits = *flags.weight_bits;
  assign(config.hist_percent, flags.hist_percent);
  assign(config.bins, flags.bins);
  flags.per_channel.apply(config.global.per_channel);
}

void apply_tuning(const QuantizeFlags& flags, QuantizeOptions& options) {
  static const std::map<std::string, BiasCorrection> corrections = {{"fast", BiasCorrection::Fast},
                                                                    {"full", BiasCorrection::Full},
                                                                    {"auto", BiasCorrection::Auto}};
  static const std::map<std::string, Equalization> equalizations = {
      {"never", Equalization::Never},
      {"always", Equalization::Always},
      {"auto", Equalization::Auto}};
  const std::string kind = flags.no_bias_correction ? "none" : flags.bias_correction;
  if (!kind.empty()) {
    options.bias_correction = kind != "none";
    options.weight.bias_correction = options.bias_correction;
    if (options.bias_correction) options.correction = corrections.at(kind);
  }
  if (!flags.equalize.empty()) options.equalization = equalizations.at(flags.equalize);
}

/// A flag that may be given several times, with a list between commas each time.
CLI::Option* add_list(CLI::App& app, const char* name, std::vector<std::string>& list,
                      const char* help) {
  return app.add_option(name, list, help)->allow_extra_args(false)->type_name("LIST");
}

CLI::Option* add_count(CLI::App& app, const char* name, std::optional<std::int64_t>& count,
                       const char* help) {
  return app.add_option(name, count, help)->check(CLI::NonNegativeNumber)->type_name("N");
}

void add_sides(CLI::App& app, Sides& sides, const std::pair<const char*, const char*>& on,
               const std::pair<const char*, const char*>& off) {
  CLI::Option* first = app.add_flag(on.first, sides.on, on.second);
  app.add_flag(off.first, sides.off, off.second)->excludes(first);
}

void add_rule_flags(CLI::App& app, QuantizeFlags& flags) {
  app.add_option("--rule", flags.rules,
                 "Settings of some layers: layer:NAME:KEY=VALUE,... or name:GLOB:..., "
                 "type:OPERATOR:..., global:...")
      ->allow_extra_args(false)
      ->type_name("RULE");
  add_list(app, "--skip-node", flags.skip_nodes, "Nodes to leave in float, by name");
  add_list(app, "--skip-tensor", flags.skip_tensors,
           "Values and weights: nodes that read or make them stay in float");
  add_list(app, "--op-types", flags.op_types, "Quantise only these operator types");
  add_count(app, "--min-weight-size", flags.min_weight_size,
            "Leave layers in float whose weight has no more elements");
  add_count(app, "--min-weight-channel", flags.min_weight_channel,
            "Leave convolutions in float that have no more output channels");
}

void add_tuning_flags(CLI::App& app, QuantizeFlags& flags) {
  CLI::Option* leave =
      app.add_flag("--no-bias-correction", flags.no_bias_correction, "Leave biases as they are");
  app.add_option("--bias-correction", flags.bias_correction,
                 "none, fast, full, or auto: full where a layer's SQNR is below 30 dB")
      ->check(CLI::IsMember({"none", "fast", "full", "auto"}))
      ->expected(0, 1)
      ->default_str("auto")
      ->type_name("KIND")
      ->excludes(leave);
  app.add_option("--equalize", flags.equalize,
                 "Scale channels between layers: never, always, or auto: where it helps")
      ->check(CLI::IsMember({"never", "always", "auto"}))
      ->type_name("WHEN");
}

}  // namespace

void add_shared_flags(CLI::App& app, QuantizeFlags& flags, const char* out_help) {
  app.add_option("model", flags.model, "Model file")->required()->type_name("MODEL");
  app.add_option("-o,--output", flags.out, out_help)->required()->type_name("FILE");
  CLI::Option* config =
      app.add_option("--config", flags.config, "INI file of converter_lite; flags override it");
  config->type_name("INI");
  app.add_option("--settings", flags.settings,
                 "Settings of an earlier run: its --json report, or the model that it wrote; flags "
                 "override them")
      ->excludes(config)
      ->type_name("FILE");
  app.add_option("--shape", flags.shapes, "Shape of an input, as x=1,3,224,224")
      ->allow_extra_args(false)
      ->type_name("NAME=DIMS");
  const QuantizeOptions defaults;
  with_default(app.add_option("--target", flags.target,
                              "Runtime that will run it (see quench list targets)"),
               defaults.config.target)
      ->type_name("NAME");
  add_rule_flags(app, flags);
  with_default(app.add_option("--batch", flags.batch, "Samples a run"), defaults.batch)
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{65536}))
      ->type_name("N");
  with_default(
      add_count(app, "--held-out", flags.held_out, "Most samples to keep apart, to judge by"),
      defaults.held_out);
  add_data_flags(app, flags.data);
  add_common_flags(app, flags.common, Work::Runs);
}

void add_quantize_flags(CLI::App& app, QuantizeFlags& flags) {
  app.add_option("--stats", flags.statistics,
                 "Statistics of quench calibrate, of all these files together: no data pass")
      ->type_name("FILES");
  app.add_option("--activation-observer", flags.activation,
                 "How activation ranges are chosen (see quench list observers)")
      ->type_name("NAME");
  app.add_option("--weight-observer", flags.weight, "How weight ranges are chosen")
      ->type_name("NAME");
  const CLI::Range bits(2, 16);
  const QuantizeOptions defaults;
  const auto add = [&](const char* name, auto& field, const auto& value, const char* help) {
    return with_default(app.add_option(name, field, help), value);
  };
  add("--activation-bits", flags.activation_bits, QuantSpec{}.bits,
      "Bits of activations. More than 8 are computed in float between exact rounding")
      ->check(bits)
      ->type_name("N");
  add("--weight-bits", flags.weight_bits, QuantSpec{}.bits, "Bits of weights")
      ->check(bits)
      ->type_name("N");
  add("--hist-percent", flags.hist_percent, defaults.config.hist_percent,
      "Share of values that observer hist keeps")
      ->check(CLI::Range(0.5, 1.0))
      ->type_name("X");
  add("--bins", flags.bins, defaults.config.bins,
      "Least bins of the histogram that KL and hist look at")
      ->check(CLI::Range(16, 4096))
      ->type_name("N");
  app.add_option("--isa", flags.isa,
                 "Instruction set of the processor: avx2 and avx512 keep sums in 16 bits")
      ->check(CLI::IsMember({"avx2", "avx512", "vnni"}))
      ->type_name("NAME");
  add_sides(app, flags.per_channel, {"--per-channel", "One grid a channel of a weight"},
            {"--per-layer", "One grid a weight"});
  add_tuning_flags(app, flags);
  add_weight_flags(app, flags.weights);
  with_default(add_count(app, "--correction-samples", flags.correction_samples,
                         "Samples that biases are corrected by"),
               defaults.correction_samples);
  app.add_option("--format", flags.format, "qdq or qoperator")
      ->check(CLI::IsMember({"qdq", "qoperator"}))
      ->type_name("NAME");
  app.add_flag("--no-metadata", flags.no_metadata, "Leave the settings out of the model");
}

void reads_configuration(Outputs& outputs, const QuantizeFlags& flags) {
  for (const std::string& path : {flags.config, flags.settings, flags.data.config}) {
    outputs.reads(path, "the settings");
  }
}

QuantizeOptions options_of(const QuantizeFlags& flags) {
  QuantizeOptions options;
  if (!flags.settings.empty()) options = read_settings(flags.settings);
  if (!flags.config.empty()) options = read_config(flags.config);
  options.data = data_options(flags.data, options.data);
  assign(options.batch, flags.batch);
  assign(options.held_out, flags.held_out);
  assign(options.correction_samples, flags.correction_samples);
  assign(options.min_quant_weight_size, flags.min_weight_size);
  assign(options.min_quant_weight_channel, flags.min_weight_channel);
  if (flags.format) options.qoperator = *flags.format == "qoperator";
  if (flags.no_metadata) options.store_settings = false;
  apply_lists(flags, options);
  apply_config(flags, options.config);
  apply_tuning(flags, options);
  apply(flags.weights, options);
  return options;
}

}  // namespace quench::cli
