// SPDX-License-Identifier: Apache-2.0
// From a graph to TFLite's program: TensorFlow has the same operators under other names, with
// weights in another order, and the same layout. What TFLite's file would say of shapes is followed
// here.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/graph_maker.h"
#include "formats/tensorflow/graph.h"
#include "formats/tflite/program.h"

namespace quench::tflite {
class Op;
}

namespace quench::tensorflow {

/// A size that is not known before a run; in shapes of tensors -1 says so.
inline constexpr std::int64_t kOpen = -2;

/// The program while it grows.
struct Lowering {
  tflite::Program program;
  std::vector<std::vector<int>> outputs;  ///< tensors by node and output; -1: none
  std::vector<int> readers;               ///< how many inputs read a node
  std::map<int, int> makers;              ///< operators by the tensor that they make
  /// Integers of tensors that say sizes, as far as they can be told; kOpen stands for others.
  std::map<int, Ints> sizes;
};

using Options = std::vector<tflite::Option>;

/// A node while it is read. Rows throw Error(BadModel) for what the file lacks and
/// Error(Unsupported) for what cannot be translated; the node is named around them.
class Step {
 public:
  Step(Lowering& state, const GraphNode& node, int index, std::string_view as)
      : state_(state), node_(node), index_(index), as_(as) {}

  std::string_view op() const { return node_.def.op(); }
  std::string_view as() const noexcept { return as_; }
  std::size_t num_inputs() const noexcept { return node_.inputs.size(); }
  int in(std::size_t input = 0) const;
  const tflite::TensorItem& item(int tensor) const;
  /// By value: tensors move as others are added.
  Shape shape(std::size_t input = 0) const { return item(in(input)).shape; }
  DType dtype(std::size_t input = 0) const;
  std::int64_t rank(std::size_t input = 0) const { return item(in(input)).rank(); }
  std::int64_t axis(std::int64_t given, std::int64_t rank) const;
  /// Whether this node alone reads what the node behind an input makes.
  bool is_only_reader(std::size_t input) const;
  /// The data of an input that is a constant, or null, until a tensor is added; where one must be.
  const Tensor* constant(std::size_t input) const;
  Tensor need_constant(std::size_t input) const;
  /// The integers of an input that is constant or computed of known sizes.
  std::optional<Ints> sizes(std::size_t input) const;
  Ints need_ints(std::size_t input) const;
  std::int64_t need_int(std::size_t input) const;
  void set_sizes(const Ints& sizes, const Shape& shape);

  const wire::AttrValue* attribute(std::string_view name) const;
  std::int64_t number(std::string_view name, std::int64_t otherwise) const;
  double real(std::string_view name, double otherwise) const;
  bool flag(std::string_view name, bool otherwise) const;
  std::string text(std::string_view name, std::string_view otherwise) const;
  Ints numbers(std::string_view name) const;
  DType type(std::string_view name, DType otherwise) const;

  /// A tensor that an operator of TFLite's makes.
  int make(std::string_view tflite_op, const std::vector<int>& inputs, const Shape& shape,
           DType dtype, const Options& options = {}, void (*read)(tflite::Op&) = nullptr);
  int add_tensor(const std::string& name, const Shape& shape, DType dtype);
  int add_constant(const std::string& name, const Tensor& data);
  int add_ints(const Ints& values);
  /// For an operator with several results: their tensors, for `make_all`.
  void make_all(std::string_view tflite_op, const std::vector<int>& inputs,
                const std::vector<Shape>& shapes, DType dtype, const Options& options = {});
  /// Says what an output of the node is.
  void set(int tensor, std::size_t output = 0);
  tflite::TensorItem& mutable_item(int tensor);
  Lowering& state() noexcept { return state_; }
  std::string result_name(std::size_t output = 0) const;

 private:
  tflite::OpItem& push(std::string_view tflite_op, const std::vector<int>& inputs,
                       const Options& options);

  Lowering& state_;
  const GraphNode& node_;
  int index_;
  std::string_view as_;
};

/// Shapes broadcast against each other; -1 is open.
Shape broadcast(const Shape& a, const Shape& b);
/// Throws for a tensor that no network has.
void expect_sound(const Shape& shape);

}  // namespace quench::tensorflow
