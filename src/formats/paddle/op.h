// SPDX-License-Identifier: Apache-2.0
// An operator of a program while it is read: its inputs and attributes, and the nodes it becomes.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/paddle/program.h"
#include "formats/paddle/rows.h"
#include "quench/graph.h"

namespace quench::paddle {

class Translator;

/// Integers that an operator is given: numbers, or a one-dimensional int64 value.
struct IntList {
  std::vector<std::int64_t> numbers;
  ValueId value = kNoValue;  ///< where they are computed

  bool computed() const noexcept { return value != kNoValue; }
};

/// The end of a slice that goes to the last element.
inline constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();

using Attributes = std::vector<std::pair<std::string_view, Attribute::Data>>;

/// What a row's `read` works with. It throws Error(BadModel) for what the program lacks and
/// Error(Unsupported) for what cannot be translated; the operator is named around it.
class Op {
 public:
  Op(Translator& translator, const Block& block, const OpItem& item, const OpRow& row);

  const OpItem& item() const noexcept { return item_; }
  std::string_view type() const noexcept { return item_.type; }
  int opset() const;

  // Inputs and outputs, by their names in programs.
  bool has(std::string_view input) const;
  bool makes(std::string_view output) const;
  ValueId in(std::string_view input, std::size_t index = 0);
  ValueId in_or_none(std::string_view input);
  std::vector<ValueId> ins(std::string_view input);
  std::size_t num_outputs(std::string_view output) const;
  /// The variables of an input or output.
  std::vector<std::string> names(std::string_view argument) const;
  /// What the program says of a variable, or its constant tells.
  DType dtype(std::string_view argument) const;
  std::optional<Shape> shape(std::string_view argument, std::size_t index = 0) const;
  std::optional<std::int64_t> rank(std::string_view argument, std::size_t index = 0) const;
  /// As `rank`, but an error where it is not known.
  std::int64_t need_rank(std::string_view argument, std::size_t index = 0) const;
  /// The shape where every dimension is known, else an error that says what needs it.
  Shape need_shape(std::string_view argument) const;

  // Attributes, with the row's defaults.
  bool flag(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  std::string text(std::string_view name) const;
  std::vector<std::int64_t> integers(std::string_view name) const;
  std::vector<double> reals(std::string_view name) const;
  std::vector<std::string> texts(std::string_view name) const;
  /// The numbers that the operator holds itself, in its shape; nothing where it has none.
  std::optional<Tensor> literal(DType dtype) const;
  /// Whether the program gives it.
  bool given(std::string_view name) const;
  /// An attribute that may also come as tensors.
  IntList list(std::string_view name);
  /// As `list`, where only numbers will do.
  std::vector<std::int64_t> numbers(std::string_view name);
  std::int64_t single(std::string_view name);
  double number(std::string_view name);
  /// The tensor that gives an attribute, or kNoValue.
  ValueId tensor_of(std::string_view name);

  /// The block that an attribute names, which is this operator's alone.
  const Block& inner_block(std::string_view name);

  // Making nodes. Each gives its first output, which has no name of its own until `set`.
  ValueId node(std::string_view op_type, std::vector<ValueId> inputs,
               const Attributes& attributes = {});
  std::vector<ValueId> nodes(std::string_view op_type, std::vector<ValueId> inputs,
                             std::size_t num_outputs, const Attributes& attributes = {});
  ValueId constant(Tensor tensor);
  ValueId ints(std::vector<std::int64_t> values);
  ValueId as_value(const IntList& list);
  /// A scalar of an element type.
  ValueId scalar(double value, DType dtype);
  ValueId cast(ValueId value, DType dtype);
  ValueId reshape(ValueId value, std::vector<std::int64_t> shape);
  ValueId transpose(ValueId value, std::vector<std::int64_t> perm);
  ValueId squeeze(ValueId value, std::vector<std::int64_t> axes);
  ValueId unsqueeze(ValueId value, std::vector<std::int64_t> axes);
  ValueId reduce(std::string_view op_type, ValueId value, std::vector<std::int64_t> axes,
                 bool keep);
  /// The int64 sizes of a value; of one dimension, as a vector of one.
  ValueId sizes(ValueId value);
  ValueId size_of(ValueId value, std::int64_t axis);
  ValueId slice(ValueId value, std::int64_t axis, std::int64_t start, std::int64_t end);
  /// The constant behind a value, or null.
  const Tensor* constant_of(ValueId value) const;
  /// The variable of an output is this value.
  void set(std::string_view output, ValueId value, std::size_t index = 0);
  /// A variable that its block reads, and what it is.
  void takes(const std::string& variable, ValueId value) { variables_[value] = variable; }
  /// A variable that its block writes is this value from now on.
  void become(const std::string& variable, ValueId value);
  /// The variable of an output is another name of a value.
  void alias(std::string_view output, ValueId value);

  Translator& translator() noexcept { return translator_; }

 private:
  friend class Translator;
  const std::vector<std::string>* variables(const std::vector<Argument>& list,
                                            std::string_view name) const;
  const VarItem* variable(std::string_view argument, std::size_t index) const;
  AttributeNote note(std::string_view name) const;
  const Attr* attribute(std::string_view name) const;
  std::string_view default_of(std::string_view name) const;
  std::vector<ValueId> tensors_of(std::string_view name);
  std::string stem() const;
  void finish();

  Translator& translator_;
  const Block& block_;
  const OpItem& item_;
  const OpRow& row_;
  std::size_t first_node_;
  std::size_t first_value_;
  std::vector<ValueId> bound_;                ///< values that are variables by now
  std::map<ValueId, std::string> variables_;  ///< what is read and made, by the program's names
};

}  // namespace quench::paddle
