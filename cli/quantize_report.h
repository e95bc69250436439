// SPDX-License-Identifier: Apache-2.0
// What quench quantize says at the end.
#pragma once

#include "cli/json.h"
#include "quench/quantize.h"

namespace quench::cli {

Json to_json(const QuantizeReport& report);
/// Tables: what was done, what stays in float and why, how near the outputs are.
void print_report(const QuantizeReport& report);

}  // namespace quench::cli
