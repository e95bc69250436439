// SPDX-License-Identifier: Apache-2.0
// Adds nodes and constants to a graph that a reader builds, with names after what they are for.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quench/graph.h"

namespace quench {

using NodeAttributes = std::vector<std::pair<std::string_view, Attribute::Data>>;
using Ints = std::vector<std::int64_t>;

/// The end of a slice that goes to the last element.
inline constexpr std::int64_t kSliceEnd = INT64_MAX;

/// Each call that makes a node gives its first output, called after `stem`.
class GraphMaker {
 public:
  explicit GraphMaker(Graph& graph) : graph_(graph) {}

  Graph& graph() noexcept { return graph_; }
  /// What new values are called after, and the operator that nodes are named after.
  void name_after(std::string_view op, std::string_view stem);

  ValueId node(std::string_view op_type, std::vector<ValueId> inputs,
               const NodeAttributes& attributes = {});
  std::vector<ValueId> nodes(std::string_view op_type, std::vector<ValueId> inputs,
                             std::size_t num_outputs, const NodeAttributes& attributes = {});
  ValueId constant(Tensor tensor);
  ValueId ints(const Ints& values);
  ValueId floats(const std::vector<float>& values);
  ValueId scalar(double value, DType dtype = DType::Float32);
  ValueId cast(ValueId value, DType dtype);
  ValueId reshape(ValueId value, const Ints& shape);
  ValueId transpose(ValueId value, const Ints& perm);
  ValueId squeeze(ValueId value, const Ints& axes);
  ValueId unsqueeze(ValueId value, const Ints& axes);
  /// Up to operator version 17, where the axes of all but ReduceSum are an attribute.
  ValueId reduce(std::string_view op_type, ValueId value, const Ints& axes, bool keep);
  ValueId slice(ValueId value, std::int64_t axis, std::int64_t start, std::int64_t end);
  /// One size of a value, as a vector of one.
  ValueId size_of(ValueId value, std::int64_t axis);
  ValueId clip(ValueId value, double min, double max);
  /// Gives a value of this name to what `value` is; what had the name before gets another.
  void rename(ValueId value, const std::string& name);

 private:
  Graph& graph_;
  std::string op_ = "node";
  std::string stem_ = "value";
};

/// The elements in another order of dimensions, as ONNX's Transpose has it. Elements of whole
/// bytes.
Tensor permuted(const Tensor& tensor, const Ints& perm);

}  // namespace quench
