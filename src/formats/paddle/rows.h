// SPDX-License-Identifier: Apache-2.0
// The table of Paddle's operators: one row each says how programs and PIR spell it and how it is
// read. Rows lie by family in rows_*.cpp.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quench/graph.h"

namespace quench::paddle {

class Op;

/// An operator that nobody touched, whose parameters went into constants of another form.
struct Restored {
  const Graph& graph;
  std::vector<const Node*> nodes;                          ///< that it became
  std::map<std::string, std::vector<std::string>> inputs;  ///< its variables by argument
  std::map<std::string, Tensor> parameters;                ///< result: what those constants were
};

/// One operator.
struct OpRow {
  std::string_view name;  ///< in programs: "conv2d"
  std::string_view pir;   ///< names in PIR, less "pd_op." and a trailing "_"; "": the same
  /// Inputs by their names in programs, in the order of PIR's operands: "Input Filter". A name
  /// that ends in ':' is an attribute which PIR passes as an operand, followed by the inputs that
  /// may give it in programs: "shape:Shape,ShapeTensor". What PIR does not have comes after '/'.
  std::string_view inputs;
  std::string_view outputs;  ///< likewise
  /// Attributes that are read, each with the other name that PIR may have for it and with what
  /// holds where it is left out: "ksize|kernel_size strides=1,1". Without '=': must be there.
  std::string_view attributes;
  void (*read)(Op& op);
  int opset = 13;  ///< the version of ONNX's operators that it needs
  /// The reverse of what `read` made of parameters; null: it left them as they are.
  void (*restore)(Restored& op) = nullptr;
};

/// What a row's list holds between separators.
std::vector<std::string_view> parts_of(std::string_view list, char separator);

/// An attribute of a row.
struct AttributeNote {
  std::string_view name, other_name;
  std::optional<std::string_view> otherwise;
};
/// What the row says of an attribute; nothing where it does not list it.
std::optional<AttributeNote> find_attribute(const OpRow& row, std::string_view name);

/// The row of an operator; null: not known.
const OpRow* find_row(std::string_view name);
/// The row of one of PIR's operators.
const OpRow* find_pir_row(std::string_view name);
/// Every row.
std::span<const OpRow* const> all_rows();

/// The families; each is the content of one file.
std::span<const OpRow> activation_rows();
std::span<const OpRow> arithmetic_rows();
std::span<const OpRow> layer_rows();
std::span<const OpRow> norm_rows();
std::span<const OpRow> reduce_rows();
std::span<const OpRow> shape_rows();
std::span<const OpRow> slice_rows();
std::span<const OpRow> pick_rows();
std::span<const OpRow> create_rows();
std::span<const OpRow> image_rows();
std::span<const OpRow> quant_rows();
std::span<const OpRow> detection_rows();
std::span<const OpRow> rnn_rows();
std::span<const OpRow> crf_rows();
std::span<const OpRow> control_rows();
std::span<const OpRow> function_rows();
std::span<const OpRow> pair_rows();
std::span<const OpRow> window_rows();
std::span<const OpRow> place_rows();
std::span<const OpRow> diagonal_rows();
std::span<const OpRow> scan_rows();
std::span<const OpRow> order_rows();
std::span<const OpRow> region_rows();
std::span<const OpRow> array_rows();

}  // namespace quench::paddle
