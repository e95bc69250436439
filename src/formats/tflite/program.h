// SPDX-License-Identifier: Apache-2.0
// A TFLite file in plain form: the tensors and operators of its first subgraph, sizes checked.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "quench/tensor.h"

namespace quench::tflite {

class Op;

/// float = (integer - zero_point) * scale, for each index of `axis` where there are several.
struct Quantization {
  std::vector<float> scale;
  std::vector<std::int64_t> zero_point;
  std::int64_t axis = 0;

  bool given() const noexcept { return !scale.empty(); }
  bool operator==(const Quantization&) const = default;
};

struct TensorItem {
  std::string name;
  DType dtype = DType::Undefined;
  Shape shape;  ///< -1: open
  Quantization quantization;
  std::optional<Tensor> data;

  /// Its integers stand for floats. An int32 bias is none of these: layers read it.
  bool quantized() const noexcept {
    return quantization.given() && (dtype == DType::Int8 || dtype == DType::UInt8);
  }
  std::int64_t rank() const noexcept { return std::ssize(shape); }
};

/// A field of an operator's options, by its name in the operator's row.
struct Option {
  std::string_view name;
  std::variant<std::int64_t, double, std::vector<std::int64_t>> data;
};

struct OpItem {
  std::string name;          ///< "CONV_2D"; of custom operators their own
  std::vector<int> inputs;   ///< tensors; -1: left out
  std::vector<int> outputs;  ///< likewise
  std::vector<Option> options;
  std::span<const std::byte> custom_options;
  int index = 0;
  int version = 1;  ///< of the operator, where it is written
  /// Where the program was made of another format's graph: how messages name the operator, and how
  /// one is read that TFLite has not.
  std::string origin;
  void (*read)(Op& op) = nullptr;
};

struct Program {
  std::vector<TensorItem> tensors;
  std::vector<OpItem> ops;
  std::vector<int> inputs;
  std::vector<int> outputs;
  std::string description;
};

/// A file's program; `owner` keeps its bytes, which constants point into. Every operator that has
/// no row is named in one Error(Unsupported), before anything else is looked at.
Program read_program(std::span<const std::byte> file, std::shared_ptr<const void> owner);
/// The file of a program.
std::string write_program(const Program& program);
/// Whether the bytes have TFLite's identifier. Never throws.
bool is_tflite(std::span<const std::byte> file) noexcept;

}  // namespace quench::tflite
