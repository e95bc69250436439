// SPDX-License-Identifier: Apache-2.0
// Values that graphs inside graphs read from outside.
#pragma once

#include "quench/graph.h"

namespace quench::exec {

/// The graph with a captured value for every outer value that only graphs deeper inside read, so
/// that it is handed on to them.
Graph with_captures(Graph graph);

}  // namespace quench::exec
