// SPDX-License-Identifier: Apache-2.0
// An operator of a MindIR graph while it is read: its inputs and arguments, and the nodes it
// becomes. An argument is an attribute of its primitive or, in newer files, an input behind the
// tensors.
#pragma once

#include <string_view>
#include <vector>

#include "formats/graph_maker.h"
#include "formats/mindir/entry.h"

namespace quench::mindir {

/// What a row's `read` works with. It throws Error(BadModel) for what the file lacks and
/// Error(Unsupported) for what cannot be translated; the operator is named around it.
class Op {
 public:
  Op(GraphMaker& make, std::string_view name, std::string_view as, std::vector<Entry> inputs,
     Entries attributes)
      : make_(make),
        name_(name),
        as_(as),
        inputs_(std::move(inputs)),
        attributes_(std::move(attributes)) {}

  GraphMaker& make() noexcept { return make_; }
  std::string_view name() const noexcept { return name_; }
  std::string_view as() const noexcept { return as_; }
  std::size_t num_inputs() const noexcept { return inputs_.size(); }
  bool has(std::size_t input) const;
  /// A tensor: one of the graph's, or made of what stands there. Of a tuple, the first.
  ValueId in(std::size_t input = 0);
  const Entry& entry(std::size_t input) const;
  /// The tensors of a tuple, or of all inputs.
  std::vector<ValueId> all_in();
  /// The data of a constant, or null, until a value is added to the graph; or to keep.
  const Tensor* constant(std::size_t input);
  std::optional<Tensor> copy(std::size_t input);
  std::optional<Shape> shape(std::size_t input = 0) const;

  /// No position: only an attribute.
  static constexpr std::size_t kNowhere = 99;
  const Entry* argument(std::string_view name, std::size_t position = kNowhere) const;
  std::int64_t number(std::string_view name, std::int64_t otherwise,
                      std::size_t position = kNowhere) const;
  double real(std::string_view name, double otherwise, std::size_t position = kNowhere) const;
  std::string text(std::string_view name, std::string_view otherwise) const;
  /// Integers of a tuple, a constant tensor or a number.
  std::optional<Ints> ints(std::string_view name, std::size_t position = kNowhere) const;
  Ints need_ints(std::string_view name, std::size_t position = kNowhere) const;

  void set(ValueId value);
  /// A tuple.
  void set_all(const std::vector<ValueId>& values);
  void set_entry(Entry entry) { result_ = std::move(entry); }
  const Entry& result() const noexcept { return result_; }
  /// The result of an operator of MindSpore Lite's behind the activation that it names.
  ValueId activated(ValueId value);
  bool only_reader = false;  ///< of its first input

 private:
  GraphMaker& make_;
  std::string_view name_, as_;
  std::vector<Entry> inputs_;
  Entries attributes_;
  Entry result_;
};

/// An activation by MindSpore Lite's number.
ValueId activate(Op& op, ValueId value, std::int64_t number);
/// Gaussian error units: exact, or by a hyperbolic tangent.
ValueId gelu(GraphMaker& make, ValueId value, bool approximate);
Entry entry_of(ValueId value);

}  // namespace quench::mindir
