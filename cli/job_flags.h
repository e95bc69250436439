// SPDX-License-Identifier: Apache-2.0
// Flags of every command that quantises, and the options that they and their files make.
#pragma once

#include "cli/common.h"
#include "cli/option_flags.h"
#include "quench/files.h"

namespace quench::cli {

/// Flags of every command that quantises: the model, how, and with which samples.
struct JobFlags {
  std::string model;
  std::string config;
  std::string settings;
  std::string data_config;
  OptionFlags options;
  CommonFlags common;
};
void add_job_flags(CLI::App& app, JobFlags& flags, unsigned job,
                   const QuantizeOptions& defaults = {});

/// The defaults for a runtime; "": as they are.
QuantizeOptions for_runtime(const std::string& target, QuantizeOptions defaults = {});
/// The defaults or the settings, then the configuration file, then the flags.
QuantizeOptions options_of(const JobFlags& flags, const QuantizeOptions& defaults = {});
/// Tells `outputs` which files say how to quantise.
void reads_configuration(Outputs& outputs, const JobFlags& flags);

/// With --tensor-parallel: what changes whole layers is not done to parts of them.
void refuse_tuning_of_parts(const std::vector<std::string_view>& given);

}  // namespace quench::cli
