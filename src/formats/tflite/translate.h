// SPDX-License-Identifier: Apache-2.0
// The state of a translation: what each tensor of a program has become, in which order of
// dimensions and as integers or floats.
#pragma once

#include <map>
#include <vector>

#include "formats/graph_maker.h"
#include "formats/tflite/program.h"
#include "quench/model.h"

namespace quench::tflite {

/// TFLite's tensors have their channels last; ours, between layers, first. A tensor of fewer than
/// three dimensions is the same in both.
enum class Layout { Last, First };
/// Quantised tensors are integers; DequantizeLinear makes them floats. Others are the same in both.
enum class Form { Integers, Floats };

/// A convolution that is written as PAD and convolution, or, where it is dilated, as
/// SPACE_TO_BATCH_ND, convolution, BATCH_TO_SPACE_ND.
struct Dilation {
  Ints block;
  Ints begin, end;  ///< pads of the whole
};

/// Where dimension `axis` of a tensor of this rank lies when channels are first.
std::int64_t first_axis(std::int64_t axis, std::int64_t rank);
/// The dimensions in the order of the layout: what a Transpose from Last to it takes.
Ints order_of(Layout layout, std::int64_t rank);
/// What a Transpose back to Last takes.
Ints order_back(std::int64_t rank);
/// Dimensions (or what else there is one of for each) in the order of the layout.
Ints arranged(const Ints& last, Layout layout);
/// Whether both layouts have their elements in the same order in memory.
bool is_same_in_memory(const Shape& shape);

class Translator {
 public:
  Translator(const Program& program, Graph& graph);

  void run();

  GraphMaker& make() noexcept { return make_; }
  const Program& program() const noexcept { return program_; }
  const TensorItem& tensor(int index) const {
    return program_.tensors[static_cast<std::size_t>(index)];
  }

  ValueId get(int tensor, Layout layout, Form form);
  /// The value of a tensor that an operator makes; floats are quantised as the tensor is.
  void set(int tensor, ValueId value, Layout layout, Form form);
  /// The layout that a tensor is at hand in: First where it is there in both.
  Layout layout_of(int tensor) const;
  /// The data of a tensor that is a constant, or null.
  const Tensor* constant(int tensor) const;
  void set_constant(int tensor, Tensor data);
  /// A constant in an order of dimensions of its own, dequantised where it is quantised.
  ValueId arranged_constant(int tensor, const Ints& perm);
  ValueId dequantize(ValueId integers, const TensorItem& item, std::int64_t axis);
  /// The dilation of a convolution's operator, or null.
  const Dilation* dilation_of(int op) const;
  bool is_folded(int op) const { return folded_.contains(op); }

 private:
  struct Held {
    std::map<std::pair<Layout, Form>, ValueId> values;
  };

  void add_inputs();
  void add_outputs();
  void find_dilations();
  void find_dilation(const OpItem& space_to_batch);
  void find_padding(const OpItem& pad);
  const OpItem* only_reader(int tensor) const;
  ValueId integers(int tensor, Layout layout);
  ValueId in_other_layout(int tensor, ValueId value, Layout from);

  const Program& program_;
  GraphMaker make_;
  std::vector<Held> held_;
  std::vector<std::optional<Tensor>> constants_;
  std::vector<std::vector<int>> readers_;  ///< operators by tensor
  std::map<int, Dilation> dilations_;      ///< by the convolution
  std::map<int, int> folded_;              ///< operators that another stands for
  std::map<std::pair<int, Ints>, ValueId> arranged_;
};

/// The model that a program means.
Model translate(const Program& program);

}  // namespace quench::tflite
