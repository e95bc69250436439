// SPDX-License-Identifier: Apache-2.0
// Parameter files of Paddle: records without names, one after the other or one a file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/onnx/source.h"
#include "quench/tensor.h"

namespace quench::paddle {

/// What a program says of a parameter.
struct Parameter {
  std::string name;
  /// Its elements; -1 where the program does not say. Shapes may differ ([1,C] for [C]), and the
  /// element type is the record's own: int8 weights are float32 in the program.
  std::int64_t elements = -1;
};

/// The tensors of a combined file, whose records follow the names in the order of their bytes;
/// the result has the order of `parameters`. Throws Error(BadModel) where the file holds anything
/// else, more or less.
std::vector<Tensor> read_combined(const onnx::Stored& file, std::span<const Parameter> parameters);
/// The tensor of a file that holds one record.
Tensor read_single(const onnx::Stored& file, const Parameter& parameter);

/// What stands before the elements of a tensor; the elements follow as they lie in memory.
/// Throws Error(Unsupported) for an element type that Paddle does not have.
std::string record_header(const Tensor& tensor);

}  // namespace quench::paddle
