// SPDX-License-Identifier: Apache-2.0
// The settings of a job as a configuration file of converter_lite.
#pragma once

#include "quench/options.h"

namespace quench::options {

/// What converter_lite's keys cannot say is in the settings, which stand in the same file: it may
/// be copied anywhere.
std::string config_text(const QuantizeOptions& options);

}  // namespace quench::options
