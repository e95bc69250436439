// SPDX-License-Identifier: Apache-2.0
// From a model to the graph that is compiled: functions inlined, constants folded, operators fused.
#pragma once

#include "exec/engine/program.h"
#include "quench/model.h"

namespace quench::exec {

/// What the nodes are called that 8-bit products would compute.
std::vector<std::string> integer_layers(const Graph& graph);
/// Fills `compile.opsets`, `compile.among_bytes` and `compile.sample_bytes` and returns the graph
/// to compile. Taps and outputs keep their names.
Graph prepare(Model model, const SessionOptions& options, CompileOptions& compile);

}  // namespace quench::exec
