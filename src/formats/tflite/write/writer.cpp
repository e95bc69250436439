// SPDX-License-Identifier: Apache-2.0
// Tensors in both layouts, scales, and the operators between them.
#include "formats/tflite/write/writer.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/format.h"

namespace quench::tflite::write {
namespace {

bool is_byte(DType dtype) { return dtype == DType::Int8 || dtype == DType::UInt8; }

/// The numbers of unsigned integers are written as signed ones, 128 less.
std::int64_t shift_of(DType dtype) { return dtype == DType::UInt8 ? 128 : 0; }

Tensor signed_bytes(const Tensor& tensor) {
  if (tensor.dtype() != DType::UInt8) return tensor;
  Tensor result = Tensor::zeros(DType::Int8, tensor.shape());
  const auto to = result.mutable_data<std::int8_t>();
  const auto from = tensor.data<std::uint8_t>();
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = static_cast<std::int8_t>(from[i] - 128);
  return result;
}

}  // namespace

Writer::Writer(const Model& model, std::set<std::string> halves)
    : graph_(model.graph), uses_(model.graph), halves_(std::move(halves)) {}

/// The scales of every value that a Q or DQ node names, per tensor or, of constants, per channel.
void Writer::read_scales() {
  for (const Node& node : graph_.nodes) {
    const bool to = node.op_type == "QuantizeLinear";
    if (!to && node.op_type != "DequantizeLinear") continue;
    const ValueId id = to ? node.outputs[0] : node.inputs[0];
    const Tensor* scale = constant(node.input(1));
    const Tensor* zero = constant(node.input(2));
    DType dtype = graph_[id].type.dtype;
    if (zero != nullptr) dtype = zero->dtype();
    if (scale == nullptr || (node.input(2) != kNoValue && zero == nullptr)) continue;
    Quantization given;
    given.scale = to_float(*scale);
    given.zero_point.assign(given.scale.size(), -shift_of(dtype));
    if (zero != nullptr) {
      const std::vector<float> zeros = to_float(*zero);
      for (std::size_t i = 0; i < zeros.size() && i < given.zero_point.size(); ++i) {
        given.zero_point[i] += static_cast<std::int64_t>(zeros[i]);
      }
    }
    if (given.scale.size() > 1) {
      const std::int64_t axis = node.get_int("axis", 1);
      given.axis = axis < 0 ? axis + rank(id) : axis;
    }
    scales_.try_emplace(id, std::move(given));
  }
}

/// Integers that are moved have the scale of what is made of them.
void Writer::spread_scales() {
  for (auto node = graph_.nodes.rbegin(); node != graph_.nodes.rend(); ++node) {
    if (node->inputs.empty() || node->inputs[0] == kNoValue || node->outputs.size() != 1) continue;
    const ValueId from = node->inputs[0];
    const bool bytes =
        is_byte(graph_[from].type.dtype) && is_byte(graph_[node->outputs[0]].type.dtype);
    const auto found = scales_.find(node->outputs[0]);
    if (bytes && found != scales_.end() && node->op_type != "Concat") {
      scales_.try_emplace(from, found->second);
    }
  }
}

Shape Writer::shape(ValueId id) const {
  const Value& value = graph_[id];
  if (value.constant) return value.constant->shape();
  if (!value.type.shape) {
    fail(ErrorKind::Unsupported,
         "the shape of '{}' is not known, which TFLite needs; fix the inputs' shapes", value.name);
  }
  Shape result;
  for (const Dim& dim : *value.type.shape) {
    if (!dim.known() && !result.empty()) {
      fail(ErrorKind::Unsupported,
           "'{}' is {}: TFLite's files have known sizes but for the batch; fix the inputs' shapes",
           value.name, to_string(value.type));
    }
    result.push_back(dim.known() ? dim.value : -1);
  }
  return result;
}

const Quantization& Writer::quantization(ValueId id) const {
  static const Quantization none;
  const auto found = scales_.find(id);
  return found == scales_.end() ? none : found->second;
}

TensorItem Writer::described(ValueId id, Layout layout) const {
  TensorItem made;
  made.name = graph_[id].name;
  made.dtype = graph_[id].constant ? graph_[id].constant->dtype() : graph_[id].type.dtype;
  made.quantization = quantization(id);
  if (made.quantization.given() && made.dtype == DType::UInt8) made.dtype = DType::Int8;
  made.shape = arranged(shape(id), Layout::Last);
  if (layout == Layout::Last && made.shape.size() >= 3) {
    const Shape first = made.shape;
    const Ints order = order_back(std::ssize(first));
    for (std::size_t i = 0; i < order.size(); ++i) {
      made.shape[i] = first[static_cast<std::size_t>(order[i])];
    }
  }
  return made;
}

Layout Writer::layout_of(ValueId id) const {
  return held_.contains({id, Layout::Last}) ? Layout::Last : Layout::First;
}

void Writer::push(OpItem op) {
  op.index = static_cast<int>(program_.ops.size());
  program_.ops.push_back(std::move(op));
}

int Writer::add_constant(const std::string& name, const Tensor& data, const Quantization& scales) {
  if (data.dtype() == DType::Float32 && halves_.contains(name)) {
    const int stored = add_constant(name + "/half", convert(data, DType::Float16));
    TensorItem floats{.name = name, .dtype = DType::Float32, .shape = data.shape()};
    constexpr int kHalves = 3;
    return add_between("DEQUANTIZE", {stored}, std::move(floats), {}, kHalves);
  }
  TensorItem made;
  made.name = name;
  made.data = scales.given() ? signed_bytes(data) : data;
  made.dtype = made.data->dtype();
  made.shape = data.shape();
  made.quantization = scales;
  program_.tensors.push_back(std::move(made));
  return static_cast<int>(program_.tensors.size() - 1);
}

int Writer::add_ints(const std::string& name, const Ints& values) {
  std::vector<std::int32_t> numbers;
  for (const std::int64_t each : values) numbers.push_back(static_cast<std::int32_t>(each));
  return add_constant(name, Tensor::of<std::int32_t>({std::ssize(numbers)},
                                                     std::span<const std::int32_t>(numbers)));
}

int Writer::add_between(const std::string& name, std::vector<int> inputs, TensorItem made,
                        const Options& options, int version) {
  made.name += format("/{}", program_.ops.size());
  program_.tensors.push_back(std::move(made));
  const int index = static_cast<int>(program_.tensors.size() - 1);
  push({.name = name,
        .inputs = std::move(inputs),
        .outputs = {index},
        .options = options,
        .version = version});
  return index;
}

int Writer::in_other_layout(ValueId id, int from, Layout layout) {
  const Layout to = layout == Layout::First ? Layout::Last : Layout::First;
  const TensorItem made = described(id, to);
  if (is_same_in_memory(described(id, Layout::Last).shape) &&
      std::ranges::count(made.shape, -1) <= 1) {
    return add_between("RESHAPE", {from, add_ints(made.name + "/shape", made.shape)}, made,
                       {{"shape", Ints(made.shape)}});
  }
  const std::int64_t count = std::ssize(made.shape);
  // First to Last moves dimension 1 to the end.
  const Ints perm = layout == Layout::First ? order_back(count) : order_of(Layout::First, count);
  return add_between("TRANSPOSE", {from, add_ints(made.name + "/perm", perm)}, made, {}, 2);
}

int Writer::tensor(ValueId id, Layout layout) {
  const bool flat = rank(id) < 3;
  if (flat) layout = Layout::First;
  const auto found = held_.find({id, layout});
  if (found != held_.end()) return found->second;
  int made = -1;
  const Layout other = layout == Layout::First ? Layout::Last : Layout::First;
  const auto there = held_.find({id, other});
  if (const Tensor* data = constant(id)) {
    const Tensor placed =
        layout == Layout::Last ? permuted(*data, order_back(data->rank())) : *data;
    made = add_constant(graph_[id].name, placed, quantization(id));
  } else if (there != held_.end()) {
    made = in_other_layout(id, there->second, other);
  } else {
    // Floats of a quantised value that an operator without integers reads.
    const NodeId maker = uses_.producer[static_cast<std::size_t>(id)];
    if (maker < 0 || graph_.nodes[static_cast<std::size_t>(maker)].op_type != "DequantizeLinear") {
      fail(ErrorKind::Internal, "nothing makes '{}'", graph_[id].name);
    }
    const ValueId integers = graph_.nodes[static_cast<std::size_t>(maker)].inputs[0];
    made = add_between("DEQUANTIZE", {tensor(integers, layout)}, described(id, layout), {}, 2);
  }
  held_[{id, layout}] = made;
  return made;
}

ValueId Writer::source(ValueId id, bool integers) const {
  if (!integers || id == kNoValue) return id;
  const NodeId maker = uses_.producer[static_cast<std::size_t>(id)];
  if (maker < 0) return id;
  const Node& node = graph_.nodes[static_cast<std::size_t>(maker)];
  return node.op_type == "DequantizeLinear" ? node.inputs[0] : id;
}

int Writer::operand(ValueId id, Layout layout, std::int64_t count, bool integers) {
  const ValueId from = source(id, integers);
  const std::int64_t missing = count - rank(from);
  if (layout == Layout::First || missing == 0) return tensor(from, layout);
  Shape whole(static_cast<std::size_t>(missing), 1);
  const Shape own = shape(from);
  whole.insert(whole.end(), own.begin(), own.end());
  const Tensor* data = constant(from);
  if (data != nullptr) {
    if (data->size() == 1) return tensor(from, Layout::First);
    return add_constant(graph_[from].name,
                        permuted(data->reshaped(whole), order_back(std::ssize(whole))),
                        quantization(from));
  }
  TensorItem made = described(from, Layout::First);
  made.shape.clear();
  for (const std::int64_t axis : order_back(count)) {
    made.shape.push_back(whole[static_cast<std::size_t>(axis)]);
  }
  if (!is_same_in_memory(made.shape)) {
    fail(ErrorKind::Unsupported, "'{}' is broadcast along more than one dimension",
         graph_[id].name);
  }
  return add_between("RESHAPE",
                     {tensor(from, Layout::First), add_ints(made.name + "/shape", made.shape)},
                     made, {{"shape", Ints(made.shape)}});
}

std::optional<std::int64_t> Writer::activation(const Node& node) const {
  if (node.op_type == "Relu") return 1;
  if (node.op_type != "Clip") return std::nullopt;
  const Tensor* low = constant(node.input(1));
  const Tensor* high = constant(node.input(2));
  if (low == nullptr || high == nullptr || low->size() != 1 || high->size() != 1) {
    return std::nullopt;
  }
  const float from = to_float(*low)[0], to = to_float(*high)[0];
  if (from == 0 && to == 6) return 3;
  if (from == -1 && to == 1) return 2;
  return std::nullopt;
}

bool Writer::is_idle(const Node& node) const {
  const Tensor* low = constant(node.input(1));
  const Tensor* high = constant(node.input(2));
  const NodeId next = node.op_type == "Clip" ? uses_.only_consumer(node.outputs[0]) : -1;
  if (next < 0 || low == nullptr || high == nullptr || low->size() != 1 || high->size() != 1) {
    return false;
  }
  const Node& behind = graph_.nodes[static_cast<std::size_t>(next)];
  if (behind.op_type != "QuantizeLinear") return false;
  const Quantization& scales = quantization(behind.outputs[0]);
  if (scales.scale.size() != 1) return false;
  const auto integer = [&](const Tensor& limit) {
    return std::nearbyint(to_float(limit)[0] / scales.scale[0]) +
           static_cast<float>(scales.zero_point[0]);
  };
  return integer(*low) <= -128 && integer(*high) >= 127;
}

Result Writer::result_of(const Node& node, const std::vector<ValueId>& inputs, bool fuses) {
  Result result{.value = node.outputs[0], .integers = false, .fused = 0};
  std::vector<NodeId> taken;
  NodeId next = uses_.only_consumer(result.value);
  if (fuses && next >= 0) {
    const Node& behind = graph_.nodes[static_cast<std::size_t>(next)];
    const auto number = activation(behind);
    if (number || is_idle(behind)) {
      result.fused = number.value_or(0);
      result.value = behind.outputs[0];
      taken.push_back(next);
      next = uses_.only_consumer(result.value);
    }
  }
  const bool read = std::ranges::all_of(inputs, [&](ValueId id) {
    const Quantization& scales = quantization(source(id, true));
    const ValueId from = source(id, true);
    return from != id &&
           is_byte(graph_[from].constant ? graph_[from].constant->dtype()
                                         : graph_[from].type.dtype) &&
           (scales.scale.size() == 1 || constant(from) != nullptr) && scales.given();
  });
  if (read && next >= 0) {
    const Node& behind = graph_.nodes[static_cast<std::size_t>(next)];
    if (behind.op_type == "QuantizeLinear" && quantization(behind.outputs[0]).scale.size() == 1) {
      result.integers = true;
      result.value = behind.outputs[0];
      taken.push_back(next);
    }
  }
  done_.insert(taken.begin(), taken.end());
  return result;
}

int Writer::quantize_to(int from, const Quantization& scales) {
  TensorItem made = item(from);
  made.data.reset();
  made.quantization = scales;
  made.dtype = DType::Int8;
  return add_between("QUANTIZE", {from}, std::move(made), {}, 2);
}

void Writer::add(const std::string& name, std::vector<int> inputs, const Result& result,
                 Layout layout, const Options& options, const Quantization* fixed, int version) {
  // Integers that are only moved have the scale they had.
  const bool moved = fixed != nullptr && fixed->given() && is_byte(graph_[result.value].type.dtype);
  if (moved) scales_.try_emplace(result.value, *fixed);
  TensorItem made = described(result.value, layout);
  if (rank(result.value) < 3) layout = Layout::First;
  const bool other = result.integers && fixed != nullptr && !(*fixed == made.quantization);
  const Quantization wanted = made.quantization;
  if (other) made.quantization = *fixed;
  const std::string own = made.name;
  int index = add_between(name, std::move(inputs), std::move(made), options, version);
  if (other) index = quantize_to(index, wanted);
  program_.tensors[static_cast<std::size_t>(index)].name = own;
  held_[{result.value, layout}] = index;
}

void Writer::alias(ValueId id, int tensor, Layout layout) {
  if (rank(id) < 3) layout = Layout::First;
  held_[{id, layout}] = tensor;
}

void Writer::add_inputs() {
  for (const ValueId id : graph_.inputs) {
    if (graph_[id].constant) continue;
    TensorItem made = described(id, Layout::First);
    made.dtype = graph_[id].type.dtype;
    program_.tensors.push_back(std::move(made));
    const int index = static_cast<int>(program_.tensors.size() - 1);
    program_.inputs.push_back(index);
    held_[{id, Layout::First}] = index;
    if (graph_[id].type.dtype != DType::UInt8 || !quantization(id).given()) continue;
    // An unsigned input stays one; behind it all integers are signed.
    TensorItem& input = program_.tensors.back();
    input.quantization.zero_point[0] += 128;
    held_[{id, Layout::First}] = quantize_to(index, quantization(id));
  }
}

void Writer::add_outputs() {
  for (const ValueId id : graph_.outputs) {
    const int index = tensor(id, Layout::First);
    program_.tensors[static_cast<std::size_t>(index)].name = graph_[id].name;
    program_.outputs.push_back(index);
  }
}

void Writer::write_node(NodeId id) {
  const Node& node = graph_.nodes[static_cast<std::size_t>(id)];
  if (done_.contains(id) || node.op_type == "DequantizeLinear") return;
  try {
    if (node.op_type == "QuantizeLinear") {
      const Layout layout = layout_of(node.inputs[0]);
      const int from = tensor(node.inputs[0], layout);
      return add("QUANTIZE", {from}, {.value = node.outputs[0], .integers = true}, layout);
    }
    find_write_row(node.op_type)->write(*this, node);
  } catch (Error& error) {
    throw error.in(label(graph_, node));
  }
}

Program Writer::run() {
  read_scales();
  spread_scales();
  add_inputs();
  for (NodeId id = 0; id < std::ssize(graph_.nodes); ++id) write_node(id);
  add_outputs();
  program_.description = "Quench";
  return std::move(program_);
}

const WriteRow* find_write_row(std::string_view op_type) {
  for (const auto family :
       {layer_rows(), function_rows(), move_rows(), pick_rows(), reduce_rows()}) {
    for (const WriteRow& row : family) {
      if (row.op_type == op_type) return &row;
    }
  }
  return nullptr;
}

namespace {

void expect_writable(const Graph& graph) {
  std::map<std::string, int> missing;
  for (const Node& node : graph.nodes) {
    const bool scales = node.op_type == "QuantizeLinear" || node.op_type == "DequantizeLinear";
    if (!scales && (!node.domain.empty() || find_write_row(node.op_type) == nullptr)) {
      ++missing[node.op_type];
    }
  }
  if (missing.empty()) return;
  std::vector<std::string> names;
  for (const auto& [name, count] : missing) names.push_back(format("{} ({})", name, count));
  fail(ErrorKind::Unsupported, "TFLite files cannot hold these operators yet: {}",
       fmt::join(names, ", "));
}

}  // namespace

Program to_program(const Model& model) {
  Model typed = model;
  std::set<std::string> halves = tidy(typed);
  expect_writable(typed.graph);
  return Writer(typed, std::move(halves)).run();
}

}  // namespace quench::tflite::write
