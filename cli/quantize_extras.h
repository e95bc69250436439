// SPDX-License-Identifier: Apache-2.0
// What `quench quantize` can do besides quantising: reports, and a metric that must be met.
#pragma once

#include <CLI/App.hpp>
#include <string>

#include "quench/jobs.h"

namespace quench::cli {

struct QuantizeExtras {
  std::string out;
  std::string report;
  std::string report_json;
  std::string target_metric;
  double at_least = 0;
};

void add_extra_flags(CLI::App& app, QuantizeExtras& extras);

/// Instead of quantising every layer: as many as meet the metric. What was found is printed, as
/// JSON if so asked. Returns the exit code.
int quantize_to_target(const std::string& model, const QuantizeOptions& options,
                       const QuantizeExtras& extras, const Context& context, Outputs& outputs,
                       bool json);

}  // namespace quench::cli
