// SPDX-License-Identifier: Apache-2.0
// Builds small TFLite files for tests.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "formats/tflite/file.h"
#include "formats/tflite/program.h"

namespace quench::testing {

/// A program that grows by one tensor or operator a call.
class TfliteBuilder {
 public:
  using Options = std::vector<tflite::Option>;

  int tensor(const std::string& name, const Shape& shape, DType dtype = DType::Float32) {
    tflite::TensorItem item;
    item.name = name;
    item.dtype = dtype;
    item.shape = shape;
    program.tensors.push_back(std::move(item));
    return static_cast<int>(program.tensors.size() - 1);
  }

  int quantized(const std::string& name, const Shape& shape, float scale, std::int64_t zero,
                DType dtype = DType::Int8) {
    const int index = tensor(name, shape, dtype);
    program.tensors.back().quantization = {.scale = {scale}, .zero_point = {zero}, .axis = 0};
    return index;
  }

  int constant(const std::string& name, const Tensor& data) {
    const int index = tensor(name, data.shape(), data.dtype());
    program.tensors.back().data = data;
    return index;
  }

  void op(const std::string& name, const std::vector<int>& inputs, const std::vector<int>& outputs,
          const Options& options = {}) {
    tflite::OpItem item;
    item.name = name;
    item.inputs = inputs;
    item.outputs = outputs;
    item.options = options;
    item.index = static_cast<int>(program.ops.size());
    program.ops.push_back(std::move(item));
  }

  std::string bytes() const { return tflite::write_program(program); }

  /// The model that is read from the file.
  static Model read(const std::string& bytes) {
    auto copy = std::make_shared<std::string>(bytes);
    return tflite::read_bytes(std::as_bytes(std::span(*copy)), copy);
  }
  Model read() const { return read(bytes()); }

  tflite::Program program;
};

inline tflite::Option number(std::string_view name, std::int64_t value) { return {name, value}; }

/// SAME or VALID, one stride, and a fused activation (1: Relu).
inline TfliteBuilder::Options conv_options(bool same, std::int64_t stride, std::int64_t fused = 0) {
  return {number("padding", same ? 0 : 1), number("stride_w", stride), number("stride_h", stride),
          number("fused", fused)};
}

/// Numbers that count up in small steps.
inline Tensor counting(const Shape& shape, float step = 0.1F) {
  Tensor result = Tensor::zeros(DType::Float32, shape);
  float next = -1;
  for (float& each : result.mutable_data<float>()) {
    each = next;
    next = next > 1 ? -1 : next + step;
  }
  return result;
}

/// x [1,5,5,2] through a convolution to y [1,3,3,4].
inline TfliteBuilder one_conv() {
  TfliteBuilder builder;
  const int x = builder.tensor("x", {1, 5, 5, 2});
  const int w = builder.constant("w", counting({4, 3, 3, 2}));
  const int b = builder.constant("b", counting({4}));
  const int y = builder.tensor("y", {1, 3, 3, 4});
  builder.op("CONV_2D", {x, w, b}, {y}, conv_options(true, 2, 1));
  builder.program.inputs = {x};
  builder.program.outputs = {y};
  return builder;
}

}  // namespace quench::testing
