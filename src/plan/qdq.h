// SPDX-License-Identifier: Apache-2.0
// What QuantizeLinear and DequantizeLinear nodes around a node allow a runtime to do.
#pragma once

#include "quench/model.h"
#include "quench/quant.h"

namespace quench::plan {

/// False for null.
bool is_q(const Node* node);
bool is_dq(const Node* node);
/// Element type of the integers behind a DequantizeLinear or before a QuantizeLinear.
DType integer_type(const Graph& graph, const Node& node);
inline bool is_8_bit(DType dtype) { return dtype == DType::Int8 || dtype == DType::UInt8; }
/// Every number that the QuantizeLinear can tell lies within the bounds: an activation with these
/// bounds before it changes nothing.
bool scale_within(const Graph& graph, const Node& q, const Range& bounds);
/// Three DequantizeLinear nodes: the scale of the bias is that of the input times that of the
/// weight. False where one is computed.
bool bias_scale_fits(const Graph& graph, const Node& bias, const Node& input, const Node& weight);
/// The same value, or equal constants.
bool same_constant(const Graph& graph, ValueId a, ValueId b);

}  // namespace quench::plan
