// SPDX-License-Identifier: Apache-2.0
// Which values the engine can hold.
#pragma once

#include <string>

#include "quench/graph.h"

namespace quench::exec {

/// Why a node cannot run because of a value it reads or makes, or "" when it can: libtorch has no
/// such type, or the value is not a tensor.
std::string type_refusal(const Graph& graph, const Node& node);

}  // namespace quench::exec
