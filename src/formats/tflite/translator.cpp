// SPDX-License-Identifier: Apache-2.0
// Tensors in both layouts and forms; each is made once, where somebody first asks for it.
#include <algorithm>
#include <numeric>

#include "base/format.h"
#include "formats/tflite/op.h"
#include "formats/tflite/rows.h"
#include "formats/tflite/translate.h"

namespace quench::tflite {

std::int64_t first_axis(std::int64_t axis, std::int64_t rank) {
  if (rank < 3 || axis == 0) return axis;
  return axis == rank - 1 ? 1 : axis + 1;
}

Ints order_of(Layout layout, std::int64_t rank) {
  Ints order(static_cast<std::size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  if (layout == Layout::First && rank >= 3) {
    std::rotate(order.begin() + 1, order.end() - 1, order.end());
  }
  return order;
}

Ints order_back(std::int64_t rank) {
  Ints order = order_of(Layout::Last, rank);
  if (rank >= 3) std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  return order;
}

Ints arranged(const Ints& last, Layout layout) {
  Ints result;
  for (const std::int64_t axis : order_of(layout, std::ssize(last))) {
    result.push_back(last[static_cast<std::size_t>(axis)]);
  }
  return result;
}

bool is_same_in_memory(const Shape& shape) {
  if (shape.size() < 3 || shape.back() == 1) return true;
  return std::all_of(shape.begin() + 1, shape.end() - 1, [](auto dim) { return dim == 1; });
}

Translator::Translator(const Program& program, Graph& graph)
    : program_(program), make_(graph), held_(program.tensors.size()) {
  for (const TensorItem& item : program.tensors) constants_.push_back(item.data);
  readers_.resize(program.tensors.size());
  for (const OpItem& op : program.ops) {
    for (const int input : op.inputs) {
      if (input >= 0) readers_[static_cast<std::size_t>(input)].push_back(op.index);
    }
  }
}

const Tensor* Translator::constant(int tensor) const {
  const auto& found = constants_[static_cast<std::size_t>(tensor)];
  return found ? &*found : nullptr;
}

void Translator::set_constant(int index, Tensor data) {
  const TensorItem& item = tensor(index);
  if (data.rank() != item.rank()) {
    fail(ErrorKind::BadModel, "the tensor '{}' has {} dimensions, but its data have {}", item.name,
         item.rank(), data.rank());
  }
  constants_[static_cast<std::size_t>(index)] = std::move(data);
}

Layout Translator::layout_of(int tensor) const {
  const auto& values = held_[static_cast<std::size_t>(tensor)].values;
  return values.contains({Layout::First, Form::Integers}) ? Layout::First : Layout::Last;
}

/// A Transpose, or a Reshape where that moves nothing.
ValueId Translator::in_other_layout(int index, ValueId value, Layout from) {
  const TensorItem& item = tensor(index);
  if (item.rank() < 3) return value;
  const Layout to = from == Layout::Last ? Layout::First : Layout::Last;
  make_.name_after("layout", item.name);
  if (is_same_in_memory(item.shape) && std::ranges::count(item.shape, -1) <= 1) {
    return make_.reshape(value, arranged(item.shape, to));
  }
  return make_.transpose(
      value, from == Layout::Last ? order_of(to, item.rank()) : order_back(item.rank()));
}

ValueId Translator::integers(int index, Layout layout) {
  auto& values = held_[static_cast<std::size_t>(index)].values;
  const auto found = values.find({layout, Form::Integers});
  if (found != values.end()) return found->second;
  const TensorItem& item = tensor(index);
  ValueId made = kNoValue;
  const Layout other = layout == Layout::Last ? Layout::First : Layout::Last;
  const auto there = values.find({other, Form::Integers});
  if (const Tensor* data = constant(index)) {
    const bool same = item.rank() < 3 || layout == Layout::Last;
    make_.name_after("constant", item.name);
    made = make_.graph().add_constant(
        item.name, same ? *data : permuted(*data, order_of(layout, item.rank())));
  } else if (there != values.end()) {
    made = in_other_layout(index, there->second, other);
  } else {
    fail(ErrorKind::BadModel, "nothing before it makes the tensor '{}'", item.name);
  }
  values.emplace(std::pair{layout, Form::Integers}, made);
  return made;
}

ValueId Translator::get(int index, Layout layout, Form form) {
  const TensorItem& item = tensor(index);
  if (item.rank() < 3) layout = Layout::Last;
  if (form == Form::Integers || !item.quantized()) return integers(index, layout);
  auto& values = held_[static_cast<std::size_t>(index)].values;
  const auto found = values.find({layout, Form::Floats});
  if (found != values.end()) return found->second;
  const std::int64_t axis = layout == Layout::Last
                                ? item.quantization.axis
                                : first_axis(item.quantization.axis, item.rank());
  const ValueId made = dequantize(integers(index, layout), item, axis);
  values.emplace(std::pair{layout, Form::Floats}, made);
  return made;
}

namespace {

Tensor scales(const Quantization& given) {
  const Shape shape = given.scale.size() == 1 ? Shape{} : Shape{std::ssize(given.scale)};
  return Tensor::of<float>(shape, std::span<const float>(given.scale));
}

Tensor zero_points(const Quantization& given, DType dtype) {
  const Shape shape = given.scale.size() == 1 ? Shape{} : Shape{std::ssize(given.scale)};
  return convert(Tensor::of<std::int64_t>(shape, std::span<const std::int64_t>(given.zero_point)),
                 dtype);
}

}  // namespace

ValueId Translator::dequantize(ValueId value, const TensorItem& item, std::int64_t axis) {
  make_.name_after("DEQUANTIZE", item.name);
  NodeAttributes attributes;
  if (item.quantization.scale.size() > 1) attributes.emplace_back("axis", axis);
  const Quantization& given = item.quantization;
  return make_.node(
      "DequantizeLinear",
      {value, make_.constant(scales(given)), make_.constant(zero_points(given, item.dtype))},
      attributes);
}

namespace {

/// Unsigned weights with one zero point as signed ones without, where all of them fit: the same
/// numbers, which integer kernels want so.
void make_signed(TensorItem& item, Tensor& data) {
  if (item.dtype != DType::UInt8 || item.quantization.scale.size() != 1) return;
  const std::int64_t zero = item.quantization.zero_point[0];
  Tensor result = Tensor::zeros(DType::Int8, data.shape());
  const auto from = data.data<std::uint8_t>();
  const auto to = result.mutable_data<std::int8_t>();
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::int64_t each = from[i] - zero;
    if (each < -128 || each > 127) return;
    to[i] = static_cast<std::int8_t>(each);
  }
  data = std::move(result);
  item.dtype = DType::Int8;
  item.quantization.zero_point[0] = 0;
}

}  // namespace

ValueId Translator::arranged_constant(int index, const Ints& perm) {
  const auto found = arranged_.find({index, perm});
  if (found != arranged_.end()) return found->second;
  TensorItem item = tensor(index);
  const Tensor* data = constant(index);
  if (data == nullptr || std::ssize(perm) != data->rank()) {
    fail(ErrorKind::Unsupported,
         "the tensor '{}' is no constant of {} dimensions, which it must be", item.name,
         perm.size());
  }
  Tensor weight = permuted(*data, perm);
  if (item.quantized()) make_signed(item, weight);
  ValueId made = make_.graph().add_constant(item.name, std::move(weight));
  if (item.quantized()) {
    const auto axis = std::ranges::find(perm, item.quantization.axis) - perm.begin();
    made = dequantize(made, item, axis);
  }
  arranged_.emplace(std::pair{index, perm}, made);
  return made;
}

void Translator::set(int index, ValueId value, Layout layout, Form form) {
  const TensorItem& item = tensor(index);
  auto& values = held_[static_cast<std::size_t>(index)].values;
  if (!values.empty() || constant(index) != nullptr) {
    fail(ErrorKind::BadModel, "two operators make the tensor '{}'", item.name);
  }
  if (item.rank() < 3) layout = Layout::Last;
  if (form == Form::Floats && item.quantized()) {
    if (item.quantization.scale.size() != 1) {
      fail(ErrorKind::Unsupported, "the result '{}' has a scale for each channel", item.name);
    }
    make_.name_after("QUANTIZE", item.name);
    value =
        make_.node("QuantizeLinear", {value, make_.constant(scales(item.quantization)),
                                      make_.constant(zero_points(item.quantization, item.dtype))});
  }
  values.emplace(std::pair{layout, Form::Integers}, value);
}

void Translator::run() {
  add_inputs();
  find_dilations();
  for (const OpItem& item : program_.ops) {
    try {
      Op op(*this, item);
      (item.read != nullptr ? item.read : find_row(item.name)->read)(op);
    } catch (Error& error) {
      throw error.in(item.origin.empty() ? format("operator {}, {}", item.index, item.name)
                                         : item.origin);
    }
  }
  add_outputs();
}

void Translator::add_inputs() {
  Graph& graph = make_.graph();
  for (const int index : program_.inputs) {
    const TensorItem& item = tensor(index);
    if (constant(index) != nullptr) continue;
    std::vector<Dim> dims;
    for (const std::int64_t size : item.shape) {
      Dim dim{.value = size, .symbol = {}};
      if (size < 0) dim.symbol = dims.empty() ? "batch" : format("{}_{}", item.name, dims.size());
      dims.push_back(std::move(dim));
    }
    const ValueId id = graph.add_fresh(item.name, ValueType::tensor(item.dtype, dims));
    graph.inputs.push_back(id);
    set(index, id, Layout::Last, Form::Integers);
  }
}

/// Under the tensor's name, in TFLite's order of dimensions.
void Translator::add_outputs() {
  Graph& graph = make_.graph();
  for (const int index : program_.outputs) {
    ValueId id = get(index, Layout::Last, Form::Integers);
    const bool input = std::ranges::find(graph.inputs, id) != graph.inputs.end();
    const bool taken = std::ranges::find(graph.outputs, id) != graph.outputs.end();
    make_.name_after("output", tensor(index).name);
    if (input || taken || graph[id].constant) id = make_.node("Identity", {id});
    if (!input && !taken) make_.rename(id, tensor(index).name);
    graph.outputs.push_back(id);
  }
  if (graph.outputs.empty()) fail(ErrorKind::BadModel, "the model has no outputs");
}

}  // namespace quench::tflite
