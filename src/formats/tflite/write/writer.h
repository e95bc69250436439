// SPDX-License-Identifier: Apache-2.0
// From a graph to a TFLite program: channels last between layers, and integers where Q/DQ nodes
// stand around an operator.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "formats/tflite/program.h"
#include "formats/tflite/translate.h"
#include "quench/model.h"

namespace quench::tflite::write {

using Options = std::vector<Option>;

/// What a node makes: the value that its operator gives, behind a fused activation and a
/// QuantizeLinear where these are part of it.
struct Result {
  ValueId value = kNoValue;
  bool integers = false;
  std::int64_t fused = 0;  ///< the activation's number in TFLite
};

class Writer {
 public:
  /// `halves`: constants to be stored in 16 bits, by their names.
  Writer(const Model& model, std::set<std::string> halves);
  Program run();

  const Graph& graph() const noexcept { return graph_; }
  const Tensor* constant(ValueId id) const {
    return id == kNoValue ? nullptr : graph_.constant(id);
  }
  /// The shape of a value, -1 for an open batch; other open dimensions are an error.
  Shape shape(ValueId id) const;
  std::int64_t rank(ValueId id) const { return std::ssize(shape(id)); }

  /// What a node makes. `inputs` must all be quantised for it to work on integers.
  Result result_of(const Node& node, const std::vector<ValueId>& inputs, bool fuses);
  /// The value whose tensor an operator reads: the integers behind a DequantizeLinear, or itself.
  ValueId source(ValueId id, bool integers) const;
  /// The layout that a value is at hand in: Last where it is there in both.
  Layout layout_of(ValueId id) const;
  /// The tensor of a value.
  int tensor(ValueId id, Layout layout);
  /// A constant in an order of dimensions and a shape of its own.
  /// Floats of one whose name is among `halves` come from 16 bits by a DEQUANTIZE.
  int add_constant(const std::string& name, const Tensor& data, const Quantization& scales = {});
  int add_ints(const std::string& name, const Ints& values);
  /// An operand of arithmetic whose result has this rank.
  int operand(ValueId id, Layout layout, std::int64_t rank, bool integers);
  const Quantization& quantization(ValueId id) const;

  /// Adds an operator that makes `result`. Where TFLite asks for other scales of its integers than
  /// the model has, a QUANTIZE follows.
  void add(const std::string& name, std::vector<int> inputs, const Result& result, Layout layout,
           const Options& options = {}, const Quantization* fixed = nullptr, int version = 1);
  /// Adds an operator that makes a tensor in between.
  int add_between(const std::string& name, std::vector<int> inputs, TensorItem made,
                  const Options& options = {}, int version = 1);
  /// A value is another name of a tensor.
  void alias(ValueId id, int tensor, Layout layout);
  const TensorItem& item(int tensor) const {
    return program_.tensors[static_cast<std::size_t>(tensor)];
  }
  TensorItem described(ValueId id, Layout layout) const;

 private:
  void read_scales();
  void spread_scales();
  void add_inputs();
  void add_outputs();
  void write_node(NodeId id);
  int in_other_layout(ValueId id, int tensor, Layout from);
  std::optional<std::int64_t> activation(const Node& node) const;
  /// A Clip that does no more than the integers behind it.
  bool is_idle(const Node& node) const;
  int quantize_to(int tensor, const Quantization& scales);
  void push(OpItem op);

  const Graph& graph_;
  Uses uses_;
  std::set<std::string> halves_;
  Program program_;
  std::map<std::pair<ValueId, Layout>, int> held_;
  std::map<ValueId, Quantization> scales_;  ///< of integers
  std::set<NodeId> done_;                   ///< nodes that are part of an operator before them
};

/// An operator of ONNX's that can be written.
struct WriteRow {
  std::string_view op_type;
  void (*write)(Writer& writer, const Node& node);
};
const WriteRow* find_write_row(std::string_view op_type);
std::span<const WriteRow> layer_rows();
std::span<const WriteRow> function_rows();
std::span<const WriteRow> move_rows();
std::span<const WriteRow> pick_rows();
std::span<const WriteRow> reduce_rows();

/// Takes out what TFLite does not need: constants that nodes give, shapes that are computed though
/// they are known, casts of constants. Infers types. Returns the names of constants that were
/// stored in 16 bits and are floats now.
std::set<std::string> tidy(Model& model);

/// The program of a model. Every operator that cannot be written is named in one
/// Error(Unsupported).
Program to_program(const Model& model);

}  // namespace quench::tflite::write
