// SPDX-License-Identifier: Apache-2.0
// Whether a graph computes every sample of a batch by itself.
#pragma once

#include <optional>
#include <string>

#include "quench/graph.h"

namespace quench::exec {

/// The bytes that nodes read and write for one sample of a batch, and those of the constants.
struct SampleBytes {
  double largest = 0;  ///< of the node that moves most
  double all = 0;      ///< of all nodes
  double constants = 0;
};

/// The symbol of the batch in a graph that computes every sample by itself, from inputs to outputs;
/// empty when it does not, or when the operators or the inferred types do not tell.
std::string batch_of_samples(const Graph& graph);
/// Of values whose first dimension is `batch`; nothing when one has another open dimension.
std::optional<SampleBytes> bytes_of_sample(const Graph& graph, const std::string& batch);

}  // namespace quench::exec
