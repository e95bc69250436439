// SPDX-License-Identifier: Apache-2.0
// A graph in plain form: its nodes in an order in which they can run, their inputs found.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "formats/tensorflow/graph.pb.h"
#include "quench/tensor.h"

namespace quench::tensorflow {

/// An output of a node.
struct Source {
  int node = 0;
  int output = 0;
};

struct GraphNode {
  wire::NodeDef def;
  std::vector<Source> inputs;  ///< without control dependencies
};

/// Every operator that has no row is named in one Error(Unsupported), before anything else is done.
std::vector<GraphNode> read_graph(std::span<const std::byte> file);

/// The element type of a number; Undefined where Quench has none.
DType dtype_of(int number) noexcept;
/// A constant; throws where its numbers do not fit its shape.
Tensor tensor_of(const wire::TensorData& data);

}  // namespace quench::tensorflow
