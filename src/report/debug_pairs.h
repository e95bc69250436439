// SPDX-License-Identifier: Apache-2.0
// Which tensor of a quantised model was made from which of the float model.
#pragma once

#include <string>
#include <vector>

#include "quench/model.h"

namespace quench {

/// What turns the integers of a tensor into numbers.
struct TensorParams {
  ValueId integers = kNoValue;
  const Tensor* scale = nullptr;
  const Tensor* zero = nullptr;  ///< none: 0
  std::int64_t axis = 1;         ///< of the integers, where there is a scale for each index of it
};

/// A tensor of a node in both models.
struct TensorPair {
  std::string node;
  std::string op_type;
  std::string tensor;
  bool is_input = false;
  std::string float_name;      ///< a value of the float model
  std::string quantized_name;  ///< a value of the quantised model; empty: see below
  bool is_weight = false;
  std::vector<TensorParams> params;
  /// The weight of an integer product, as numbers in the float weight's shape.
  Tensor weight;
  /// An activation of an integer product: its integers, their scale and zero point.
  std::vector<std::string> parts;
};

/// The float tensors of every node of the quantised model that the float model has too. The names
/// are those of the float model.
std::vector<TensorPair> find_pairs(const Graph& real, const Graph& quantized);

/// The number that each integer of a constant stands for.
std::vector<float> dequantized(const Graph& graph, const TensorParams& params);

}  // namespace quench
