// SPDX-License-Identifier: Apache-2.0
// Questions to a configuration, beyond its public face.
#pragma once

#include "quench/quant_config.h"

namespace quench::plan {

/// `*` stands for any characters, `?` for one, `[abc]` and `[!a-c]` for one of a set.
bool matches_glob(std::string_view pattern, std::string_view text);
/// The configuration in which rules and lists that name ColumnParallelLinear or RowParallelLinear
/// name operators and the layers of that kind instead.
QuantConfig by_operators(const Graph& graph, const QuantConfig& config);
/// Every name in the configuration must stand for something in the graph: else Error(BadConfig).
void check_names(const Graph& graph, const QuantConfig& config);
/// Bit widths and the instruction set must be ones there are: else Error(BadConfig).
void check_settings(const QuantConfig& config);
/// Why a list or a rule of the configuration keeps a node in float that it names, or "".
std::string named_reason(const Graph& graph, const Node& node, const QuantConfig& config);
/// Why the configuration keeps a node in float, or "".
std::string skip_reason(const Graph& graph, const Node& node, const QuantConfig& config);

}  // namespace quench::plan
