// SPDX-License-Identifier: Apache-2.0
// Flags of every command that quantises, and the options that they and their files make.
#include "cli/job_flags.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "cli/distributed.h"
#include "quench/converter_lite.h"
#include "quench/formats.h"

namespace quench::cli {

void add_job_flags(CLI::App& app, JobFlags& flags, unsigned job, const QuantizeOptions& defaults) {
  add_model(app, flags.model);
  CLI::Option* config =
      app.add_option("--config", flags.config, "INI file of converter_lite; flags override it");
  config->type_name("INI");
  for_experts(app.add_option("--settings", flags.settings,
                             "Settings of an earlier run: its --json report, or the model that it "
                             "wrote; flags override them"))
      ->excludes(config)
      ->type_name("FILE");
  for_experts(app.add_option("--data-config", flags.data_config,
                             "INI file with a [data_preprocess_param] section; flags override it"))
      ->type_name("INI");
  add_common_flags(app, flags.common, Work::Shares);
  flags.options.add(app, job, defaults);
}

QuantizeOptions for_runtime(const std::string& target, QuantizeOptions defaults) {
  if (!target.empty()) defaults.config.target = target;
  return defaults;
}

QuantizeOptions options_of(const JobFlags& flags, const QuantizeOptions& defaults) {
  QuantizeOptions options = defaults;
  if (!flags.settings.empty()) options = read_settings(flags.settings);
  const auto lay_over = [&](QuantizeOptions& read) {
    read.command = typed_command();
    if (!flags.data_config.empty()) read.data = read_data_section(flags.data_config);
    flags.options.apply(read);
  };
  if (!flags.config.empty()) return read_config(flags.config, std::move(options), lay_over);
  lay_over(options);
  return options;
}

void reads_configuration(Outputs& outputs, const JobFlags& flags) {
  for (const std::string& path : {flags.config, flags.settings, flags.data_config}) {
    outputs.reads(path, "the settings");
  }
}

void refuse_tuning_of_parts(const std::vector<std::string_view>& given) {
  if (!tensor_parallel()) return;
  const std::string_view tuning = find_option("equalize").group;
  for (const std::string_view name : given) {
    if (find_option(name).group != tuning || name.starts_with("no-")) continue;
    throw Error(ErrorKind::Usage, fmt::format("--{} looks at whole layers, of which no process has "
                                              "all with --tensor-parallel; leave it out",
                                              name));
  }
}

}  // namespace quench::cli
