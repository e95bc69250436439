// SPDX-License-Identifier: Apache-2.0
// converter_lite's debug reports of two models that are at hand.
#pragma once

#include "quench/files.h"
#include "quench/report.h"

namespace quench {

/// As `write_debug_info`, of a float model that is prepared and of what it was made into.
void write_debug_tables(const Model& real, Model quantized, const DebugInfoOptions& options,
                        const Context& context, Outputs& outputs);
/// The float model, prepared as the kind of quantisation prepares it.
Model load_for_tables(const std::string& path, const DebugInfoOptions& options);

/// quant_param.csv: a row for each channel of each grid of each node.
std::string grids_table(const Graph& graph);

/// A line of a table; converter_lite ends every one with a comma.
std::string debug_line(std::vector<std::string> fields);

/// What the tables of a job look at; the folder is made, so that one that cannot be is told of
/// before the work.
DebugInfoOptions start_debug_info(const QuantizeOptions& options);

}  // namespace quench
