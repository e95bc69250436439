// SPDX-License-Identifier: Apache-2.0
// A user's own program as a metric.
#pragma once

#include <string>

#include "quench/model.h"

namespace quench::evaluation {

/// Runs a shell command on a model: {model} stands for its file, which is written to `folder` under
/// `name` or one like it.
/// Throws Error(BadData) when it fails or prints no number.
double run_metric_command(const std::string& command, const Model& model, const std::string& folder,
                          const std::string& name = "metric_model");

}  // namespace quench::evaluation
