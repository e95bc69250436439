// SPDX-License-Identifier: Apache-2.0
// An operator of a program while it is read: its inputs and options, and the nodes it becomes.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "formats/tflite/translate.h"

namespace quench::tflite {

/// What a row's `read` works with. It throws Error(BadModel) for what the file lacks and
/// Error(Unsupported) for what cannot be translated; the operator is named around it.
class Op {
 public:
  Op(Translator& translator, const OpItem& item);

  const OpItem& item() const noexcept { return item_; }
  GraphMaker& make() noexcept { return translator_.make(); }
  Translator& translator() noexcept { return translator_; }

  bool has(std::size_t input) const;
  std::size_t num_inputs() const noexcept { return item_.inputs.size(); }
  std::size_t num_outputs() const noexcept { return item_.outputs.size(); }
  const TensorItem& in_item(std::size_t input) const;
  const TensorItem& out_item(std::size_t output = 0) const;
  std::int64_t rank(std::size_t input = 0) const { return in_item(input).rank(); }

  /// The layout to work in: channels first where an input of this rank is at hand so.
  Layout layout() const;
  /// Integers where input and result have one scale and zero point, so that moving elements is
  /// enough; floats otherwise.
  Form form(std::size_t input = 0) const;
  ValueId in(std::size_t input, Layout layout = Layout::Last, Form form = Form::Floats);
  /// An operand of arithmetic with a result of this rank: dimensions of one in front of its own.
  ValueId operand(std::size_t input, Layout layout, std::int64_t rank);
  void set(ValueId value, Layout layout = Layout::Last, Form form = Form::Floats,
           std::size_t output = 0);
  /// Hands the input on, channels first, where the operator is part of a convolution (`Dilation`).
  bool hand_on();
  /// A float result behind the activation that the options name.
  void set_activated(ValueId value, Layout layout);

  /// The integers of a constant input; nothing where it is computed.
  std::optional<Ints> ints(std::size_t input) const;
  /// Likewise, where only a constant will do.
  Ints need_ints(std::size_t input) const;
  std::int64_t need_int(std::size_t input) const;
  /// An int64 vector: of a constant, or computed.
  ValueId as_int64(std::size_t input);
  /// A dimension counted from the front.
  std::int64_t axis(std::int64_t given, std::int64_t rank) const;

  std::int64_t number(std::string_view option) const;
  double real(std::string_view option) const;
  Ints numbers(std::string_view option) const;

 private:
  const Option& option(std::string_view name) const;
  ValueId activated(ValueId value);
  bool is_implied(double min, double max) const;
  void name_nodes();

  Translator& translator_;
  const OpItem& item_;
};

}  // namespace quench::tflite
