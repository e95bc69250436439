// SPDX-License-Identifier: Apache-2.0
// What an inference rule sees of its node, and how it says what it found.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "ops/symbolic.h"
#include "quench/model.h"

namespace quench::ops {

struct Scope;

/// One node during inference. Errors need not name it: the caller of the rule adds that.
class InferContext {
 public:
  InferContext(Scope& scope, Node& node) : scope_(scope), node_(node) {}

  const Node& node() const noexcept { return node_; }
  /// The version of the node's own domain.
  std::int64_t opset() const;
  std::size_t num_inputs() const noexcept { return node_.inputs.size(); }
  std::size_t num_outputs() const noexcept { return node_.outputs.size(); }
  bool has_input(std::size_t index) const noexcept { return node_.input(index) != kNoValue; }
  bool has_output(std::size_t index) const noexcept;

  /// The type of an input; one that is left out has an unknown type.
  const ValueType& input(std::size_t index) const;
  DType dtype(std::size_t index) const { return input(index).dtype; }
  /// The dimensions of an input, or null when its rank is unknown.
  const Dims* shape(std::size_t index) const;
  /// The data of an input that is a constant, or null.
  const Tensor* constant(std::size_t index) const;
  /// The elements of an input of at most one dimension, as far as they can be told.
  const SymInts* ints(std::size_t index) const;
  /// The elements of such an input, when all are numbers.
  std::optional<std::vector<std::int64_t>> numbers(std::size_t index) const;
  /// A single number: the first element of input `index`, if it is known.
  std::optional<std::int64_t> number(std::size_t index) const;
  /// The numbers of an attribute (older opsets) or, where that is absent, of an input (newer ones).
  /// `given` tells a parameter that is not known yet from one that is left out.
  struct Parameter {
    bool given = false;
    std::optional<std::vector<std::int64_t>> numbers;
  };
  Parameter parameter(std::string_view attribute, std::size_t index) const;

  /// Says what an output is. Together with what the file declares it must make sense.
  void set(std::size_t index, const ValueType& type);
  void set(std::size_t index, DType dtype, std::optional<Dims> dims);
  /// The same type and shape as an input.
  void set_like(std::size_t index, std::size_t source);
  /// Says what the elements of an integer output are.
  void set_ints(std::size_t index, SymInts values);
  /// Says that an output is a constant, which must outlive the inference.
  void set_constant(std::size_t index, const Tensor& tensor);

  /// Infers a graph that the node holds, given the types of its inputs; the types of its outputs.
  /// Of a body that may never run, a node that makes no sense is no error.
  enum class Runs { Surely, Perhaps };
  std::vector<ValueType> infer_body(std::string_view attribute,
                                    const std::vector<ValueType>& inputs, Runs runs);

 private:
  Scope& scope_;
  Node& node_;
};

/// A fact of the operator table. A rule may leave outputs unset: they stay unknown.
using InferRule = void (*)(InferContext&);

/// `axis` counted from the front; throws Error(BadModel) when it is outside [-rank, rank).
std::size_t checked_axis(std::int64_t axis, std::size_t rank, std::string_view what = "axis");
/// The axes as flags by dimension; throws when one is out of range or stands twice.
std::vector<bool> checked_axes(const std::vector<std::int64_t>& axes, std::size_t rank);
/// Throws Error(BadModel) unless inputs `a` and `b` have one element type, where both are known.
void expect_same_dtype(const InferContext& context, std::size_t a, std::size_t b);
/// Throws unless input `index`, where its shape is known, has at least / exactly `rank` dimensions.
void expect_min_rank(const InferContext& context, std::size_t index, std::size_t rank);
void expect_rank(const InferContext& context, std::size_t index, std::size_t rank);
/// "[N,3,224,224]".
std::string shape_text(const Dims& dims);
/// `count` dimensions of which nothing is known.
inline Dims unknown_dims(std::size_t count) { return Dims(count); }

}  // namespace quench::ops
