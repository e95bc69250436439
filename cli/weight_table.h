// SPDX-License-Identifier: Apache-2.0
// How weight-only and dynamic quantisation stored each weight, for people and for programs.
#pragma once

#include "cli/json.h"
#include "quench/quantize.h"

namespace quench::cli {

Json weights_json(const QuantizeReport& report);
void print_weights(const QuantizeReport& report);

}  // namespace quench::cli
