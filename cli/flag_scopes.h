// SPDX-License-Identifier: Apache-2.0
// Which flags of quench quantize count for which kind of quantisation.
#pragma once

#include <CLI/App.hpp>

#include "quench/quantize.h"

namespace quench::cli {

/// Throws Error(Usage) for the first flag on the command line that changes nothing with these
/// options, saying what it is for.
void refuse_idle_flags(const CLI::App& app, const QuantizeOptions& options);

}  // namespace quench::cli
