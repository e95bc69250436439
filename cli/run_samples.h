// SPDX-License-Identifier: Apache-2.0
// quench run MODEL DATA: what a model says of images or other samples.
#pragma once

#include <string>

#include "cli/common.h"
#include "quench/data.h"
#include "quench/session.h"

namespace quench::cli {

/// Runs the model on every sample and prints what came out: of class scores the highest.
int run_samples(const std::string& model, const DataOptions& data, const SessionOptions& options,
                const CommonFlags& flags);

}  // namespace quench::cli
