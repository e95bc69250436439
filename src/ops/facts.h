// SPDX-License-Identifier: Apache-2.0
// What is known of an operator besides its types: what kind of function it is, where its weights
// and their channels lie, how it runs on integers, what it may be fused with.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "quench/model.h"

namespace quench::ops {

/// Properties that hold whatever the attributes are (monotone: with those that ONNX gives them).
enum Trait : std::uint32_t {
  kPointwise = 1U << 0U,  ///< element by element, of inputs that are stretched to one shape
  kAllInputs = 1U << 1U,  ///< every input holds numbers to compute with, not only the first
  kOneFloat = 1U << 2U,
  kFunction = kPointwise | kOneFloat,   ///< of one float, which gives one; other inputs set it
  kOperands = kPointwise | kAllInputs,  ///< of several numbers
  kMoves = 1U << 3U,                    ///< hands on elements of its first input, and no others
  kInPlace = 1U << 4U,
  kView = kMoves | kInPlace,  ///< hands on all of them, in memory that may stay where it is
  kOneByOne = 1U << 5U,       ///< each element of the result is ruled by one of each input
  kByChannel = 1U << 6U,      ///< a channel of the result depends on that channel alone
  kFinite = 1U << 7U,         ///< finite numbers (up to 1e30) stay finite
  kKeepsScale = 1U << 8U,     ///< f(s x) = s f(x) for every s > 0, channel by channel
  kMonotone = 1U << 9U,       ///< a greater number never gives a lesser one
  kCheap = 1U << 10U,         ///< takes no longer than looking its result up
  kHeavy = 1U << 11U,         ///< attributes alone can make it slow or hungry
  kRandom = 1U << 12U,        ///< gives something else each time
  kSizes = 1U << 13U,         ///< exporters compute shapes with it
  kRelative = 1U << 14U,      ///< small numbers matter to it as much as large ones
};

/// What the constant inputs of an operator are to it.
enum class WeightKind : std::uint8_t {
  None,
  Convolution,            ///< [out, in / groups, ...]
  TransposedConvolution,  ///< [in, out / groups, ...]
  Matrix,                 ///< of a product; transposed by `transB`
  Table,                  ///< of rows that are looked up
  Recurrent,              ///< [directions, gates, in]
};

/// Inputs as a set of bits.
enum InputSet : std::uint8_t { kNoInput = 0, kInput0 = 1, kInput1 = 2, kInput2 = 4 };
constexpr InputSet operator|(InputSet a, InputSet b) {
  return static_cast<InputSet>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}

/// Whether samples of a batch, the rows of the first dimension, stay apart. What is pointwise keeps
/// them apart anyway.
enum class Batch : std::uint8_t {
  Unknown,
  Rows,          ///< whatever it does to the other dimensions
  SameRows,      ///< where the result has as many rows
  InnerAxis,     ///< where `axis` is not the first dimension
  Join,          ///< likewise, of several inputs
  Lookup,        ///< likewise, or rows of indices into a constant
  Scaled,        ///< where one scale is for all rows
  Flatten,       ///< where `axis` is 1
  Permute,       ///< where the first dimension stays the first
  Product,       ///< of matrices, over the last dimensions
  FirstOperand,  ///< where the first matrix is not transposed
  Reduce,        ///< where the first dimension is not reduced
};

/// How runtimes run an operator on integers, if they do.
enum class IntegerForm : std::uint8_t {
  None,
  Convolution,            ///< of bytes into 32-bit sums, requantised
  TransposedConvolution,  ///< likewise
  Product,                ///< likewise, of matrices
  Clamp,                  ///< by the range of the quantised result
  LookupTable,            ///< by 256 results
  Average,                ///< of bytes, requantised
  View,                   ///< as it is
};

/// Numbers below and above which a node lets none pass; nothing: any.
struct Bounds {
  std::optional<double> min, max;
};

/// An activation as a fused layer names it.
struct Epilogue {
  std::string_view name;  ///< "": none
  float alpha = 0;        ///< clip: least value; leaky_relu: slope; hard_sigmoid: its alpha
  float beta = 0;         ///< clip: greatest value; hard_sigmoid: its beta
};

/// A node, and what its rules may ask of the graph around it.
struct NodeView {
  const Node& node;
  std::int64_t opset;
  /// The number that a value always holds, or nothing.
  std::function<std::optional<double>(ValueId)> number;
};

/// The row of an operator, less its types.
struct OpFacts {
  std::uint32_t is = 0;  ///< of Trait
  WeightKind weight = WeightKind::None;
  InputSet weights = kNoInput;  ///< the inputs that may be one
  int bias = -1;                ///< the input that is added to the result; -1: none
  InputSet learned = kNoInput;  ///< inputs that training changes besides these
  Batch batch = Batch::Unknown;
  int axis = -1;  ///< what the attribute `axis` is when it is left out
  IntegerForm integer = IntegerForm::None;
  std::string_view integer_op;  ///< the operator of ONNX's kind that multiplies bytes
  /// What the node clamps its input to; nothing where that is computed. Null: it does not clamp.
  std::optional<Bounds> (*bounds)(const NodeView&) = nullptr;
  /// It as the epilogue of a layer, with what the attributes alpha and beta are when left out.
  Epilogue epilogue;
  /// Reads that where two attributes do not tell; it gives nothing for a node that is no epilogue.
  std::optional<Epilogue> (*read_epilogue)(const NodeView&) = nullptr;
};

/// The facts of a node's operator; those of an operator we do not know are empty.
const OpFacts& facts(const Node& node);
/// Whether its operator has all of these properties.
inline bool is(const Node& node, std::uint32_t traits) {
  return (facts(node).is & traits) == traits;
}

/// A convolution or a product of matrices: what quantisation is done for.
bool is_layer(const Node& node);
/// Plain or transposed.
bool is_convolution(const Node& node);

/// How the weight of a layer, or a table, lies.
struct WeightLayout {
  int channel_axis = -1;  ///< of output channels
  int sum_axis = -1;      ///< of a matrix: along which a product sums
  std::int64_t groups = 1;
  std::int64_t channels = -1;  ///< of the result, in all groups
  /// Its indices are not the channels one by one: groups share them, or have several each.
  bool grouped_axis = false;
};

/// The layout of a constant of this shape as input `input`; nothing where it is no weight or its
/// shape does not fit.
std::optional<WeightLayout> weight_layout(const Node& node, std::size_t input, const Shape& weight);

/// A node of ONNX's own, or one that means the same, as the epilogue of a layer.
std::optional<Epilogue> epilogue_of(const NodeView& view);

// What rows name.
std::optional<Bounds> relu_bounds(const NodeView& view);
std::optional<Bounds> clip_bounds(const NodeView& view);
std::optional<Epilogue> clip_epilogue(const NodeView& view);
std::optional<Epilogue> gelu_epilogue(const NodeView& view);
std::optional<Epilogue> swish_epilogue(const NodeView& view);

}  // namespace quench::ops
