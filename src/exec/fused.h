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
    kBias
  };
  ByteInput x, w, out;
  ValueId bias = kNoValue;

  std::vector<ValueId> inputs() const;
};

/// QLinearAdd and QLinearMul.
struct BinaryNode {
  enum Input : std::size_t { kA, kAScale, kAZero, kB, kBScale, kBZero, kOutScale, kOutZero };
  ByteInput a, b, out;

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

/// MatMulIntegerToFloat, as ONNX Runtime has it.
struct DynamicNode {
  enum Input : std::size_t { kA, kB, kAScale, kBScale, kAZero, kBZero, kBias };
  ByteInput a, b;
  ValueId bias = kNoValue;

  std::vector<ValueId> inputs() const;
};

/// Conv, ConvTranspose, Gemm and MatMul of floats.
struct FloatLayerNode {
  enum Input : std::size_t { kX, kW, kBias };
  ValueId x = kNoValue;
  ValueId w = kNoValue;
  ValueId bias = kNoValue;

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

/// The activation of a fused node: attributes `activation`, `activation_alpha`, `activation_beta`.
struct FusedActivation {
  std::string name;  ///< empty: none
  float alpha = 0;   ///< clip: least value; leaky_relu: slope; hard_sigmoid: its alpha
  float beta = 0;    ///< clip: greatest value; hard_sigmoid: its beta

  static FusedActivation of(const Node& node);
  void put(Node& node) const;
};

}  // namespace quench::exec
