// SPDX-License-Identifier: Apache-2.0
// The nodes of the engine's own domain that have many inputs: which is which, by name. Rewrites
// fill these structs, kernels ask for inputs by the names in them; nobody else counts positions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "quench/graph.h"

namespace quench::exec {

/// The domain of operators that only our engine knows.
inline constexpr std::string_view kEngineDomain = "quench.exec";

/// A tensor of bytes and its quantisation parameters, as a node refers to them. Of a result there
/// is no value; without a zero point it is 0, of type uint8.
struct ByteInput {
  ValueId value = kNoValue;
  ValueId scale = kNoValue;
  ValueId zero = kNoValue;
};

/// QLinearConv, QLinearConvTranspose and QLinearMatMul, with what may be fused.
struct LayerNode {
  enum Input : std::size_t {
    kX,
    kXScale,
    kXZero,
    kW,
    kWScale,
    kWZero,
    kOutScale,  ///< left out: the result is float, of the type in attribute `to`
    kOutZero,
    kBias,
    kResidual,  ///< added before the activation
    kResidualScale,
    kResidualZero,
    kMiddleScale,  ///< the layer is requantised before the residual is added, after its activation
    kMiddleZero
  };
  ByteInput x, w, out;
  ValueId bias = kNoValue;
  ByteInput residual;
  ByteInput middle;

  static LayerNode of(const Node& node);
  std::vector<ValueId> inputs() const;
};

/// QLinearAdd and QLinearMul.
struct BinaryNode {
  enum Input : std::size_t { kA, kAScale, kAZero, kB, kBScale, kBZero, kOutScale, kOutZero };
  ByteInput a, b, out;

  static BinaryNode of(const Node& node);
  std::vector<ValueId> inputs() const;
};

/// QLinearAveragePool, QLinearGlobalAveragePool and QLinearSoftmax.
struct UnaryNode {
  enum Input : std::size_t {
    kX,
    kXScale,
    kXZero,
    kOutScale,  ///< left out: the result is float
    kOutZero
  };
  ByteInput x, out;

  std::vector<ValueId> inputs() const;
};

/// MatMulIntegerToFloat: ONNX Runtime's inputs, then ours.
struct DynamicNode {
  enum Input : std::size_t {
    kA,
    kB,
    kAScale,
    kBScale,
    kAZero,
    kBZero,
    kBias,
    kResidual,  ///< added after the factors
    kFactors    ///< one for each row
  };
  ByteInput a, b;
  ValueId bias = kNoValue;
  ValueId residual = kNoValue;
  ValueId factors = kNoValue;

  std::vector<ValueId> inputs() const;
};

/// Conv, ConvTranspose, Gemm and MatMul of floats.
struct FloatLayerNode {
  enum Input : std::size_t { kX, kW, kBias, kResidual };
  ValueId x = kNoValue;
  ValueId w = kNoValue;
  ValueId bias = kNoValue;
  ValueId residual = kNoValue;

  std::vector<ValueId> inputs() const;
};

/// ScaledAttention; keys are turned, so that their columns belong to queries' columns.
struct AttentionNode {
  enum Input : std::size_t { kQueries, kKeys, kValues, kMask };
  ValueId queries = kNoValue;
  ValueId keys = kNoValue;
  ValueId values = kNoValue;
  ValueId mask = kNoValue;

  std::vector<ValueId> inputs() const;
};

/// GatherRows: rows of a table of bytes, dequantised.
struct GatherRowsNode {
  enum Input : std::size_t { kTable, kIndices, kScales, kZeros };
  ValueId table = kNoValue;
  ValueId indices = kNoValue;
  ValueId scales = kNoValue;
  ValueId zeros = kNoValue;

  std::vector<ValueId> inputs() const;
};

/// OnTheFly: a product whose weight stays packed.
struct OnTheFlyNode {
  enum Input : std::size_t { kOperand, kWeight, kScale, kZero, kAdded };
  ValueId operand = kNoValue;
  ByteInput weight;
  ValueId added = kNoValue;

  std::vector<ValueId> inputs() const;
};

/// The activation of a fused node: attributes `activation`, `activation_alpha`, `activation_beta`,
/// the same with "sum_" before them for what follows a residual that is added after a rounding.
struct FusedActivation {
  std::string name;  ///< empty: none
  float alpha = 0;   ///< clip: least value; leaky_relu: slope; hard_sigmoid: its alpha
  float beta = 0;    ///< clip: greatest value; hard_sigmoid: its beta

  static FusedActivation of(const Node& node, std::string_view prefix = "");
  void put(Node& node, std::string_view prefix = "") const;
};

}  // namespace quench::exec
