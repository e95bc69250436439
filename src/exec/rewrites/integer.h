// SPDX-License-Identifier: Apache-2.0
// Rules that turn float operators between Q/DQ nodes into integer ones; one function each, called
// with a node. The new nodes have the inputs of ONNX's QLinear operators (or ONNX Runtime's, where
// ONNX has none) in the engine's own domain, and more: see exec/fused.h. Attribute `residual_first`
// of a layer says that the residual is the first operand of a sum behind a rounding,
// `rounds_twice` that a convolution rounds as Rounding::Twice says, `halves_away` of an average
// that it rounds the halves of its bytes away from zero.
#pragma once

#include "exec/rewrites/quant_params.h"

namespace quench::exec::rewrites {

/// Conv, ConvTranspose, Gemm and MatMul, with bias, residual and activation.
bool integer_layer(Rewriter& rewriter, NodeId id);
/// DynamicQuantizeLinear's MatMulInteger with the Cast, Mul, bias and activation behind it.
bool integer_dynamic(Rewriter& rewriter, NodeId id);
/// Add, Mul, Concat, averaging pools and Softmax between Q/DQ nodes.
bool integer_arithmetic(Rewriter& rewriter, NodeId id);
/// Takes a sum of bytes into the convolution that makes one of them, for each QLinearAdd `id`.
bool integer_residual(Rewriter& rewriter, NodeId id);
/// Functions of one value: a table of 256 entries, for each QuantizeLinear `id`.
bool integer_table(Rewriter& rewriter, NodeId id);
/// The same for functions whose results stay float: a lookup table of 256 floats, for each last
/// node `id`.
bool float_table(Rewriter& rewriter, NodeId id);
/// Operators that only move elements.
bool integer_move(Rewriter& rewriter, NodeId id);
/// Quantises before a moving operator what was quantised after it; `id` is the QuantizeLinear.
bool quantise_before_move(Rewriter& rewriter, NodeId id);

/// The QuantizeLinear, per tensor and to 8 bits, that alone reads `value`.
struct Quantiser {
  NodeId node = kNoNode;
  ParamValues params;
};
std::optional<Quantiser> quantiser_behind(const Rewriter& rewriter, ValueId value);
/// Known alike in every dimension, so that adding them broadcasts nothing.
bool same_shape(const ValueType& a, const ValueType& b);
/// A node of the engine's domain.
Node engine_node(std::string_view op, std::string_view name, std::vector<ValueId> inputs,
                 std::vector<ValueId> outputs);

}  // namespace quench::exec::rewrites
