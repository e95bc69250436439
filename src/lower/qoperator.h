// SPDX-License-Identifier: Apache-2.0
// What the files of qoperators/ give: one function an operator, from its Q/DQ form to its integer
// form.
#pragma once

#include <optional>

#include "quench/model.h"

namespace quench::lower {

/// Operators that ONNX Runtime adds to ONNX's.
inline constexpr std::string_view kMicrosoft = "com.microsoft";

/// Integers and their scale: what a DequantizeLinear reads or a QuantizeLinear makes.
struct QTensor {
  ValueId integers = kNoValue;
  ValueId scale = kNoValue;
  ValueId zero_point = kNoValue;
  int axis = -1;  ///< one scale for each index of this axis; -1: one for all
};

/// A float node whose data inputs all come from 8-bit integers.
struct QSite {
  const Graph& graph;
  const Node& node;
  std::vector<std::optional<QTensor>> inputs = {};  ///< by input; nothing: not from integers
  std::optional<QTensor> output = {};               ///< nothing: its result is read in float
  /// Of a layer: the int32 bias on the scale of the products, kNoValue where there is none; nothing
  /// where there is one of another kind.
  std::optional<ValueId> bias = {};
  std::int64_t opset = 0;

  /// The node with another type and other inputs, attributes and name kept.
  Node as(std::string op_type, std::string_view domain) const;
};

/// Appends integers, scale and zero point.
void append(std::vector<ValueId>& inputs, const QTensor& tensor);
/// Appends scale and zero point.
void append_params(std::vector<ValueId>& inputs, const QTensor& tensor);

/// The integer form, its outputs left to the caller; nothing where there is none.
using QRule = std::optional<Node> (*)(const QSite& site);

#define QUENCH_QOPERATOR(op_type, rule) std::optional<Node> rule(const QSite& site);
#include "lower/qoperators.inc"
#undef QUENCH_QOPERATOR

}  // namespace quench::lower
