// SPDX-License-Identifier: Apache-2.0
// Inputs, attributes and results of a node.
#include "formats/tensorflow/step.h"

#include <algorithm>
#include <charconv>

#include "base/format.h"
#include "formats/tflite/rows.h"

namespace quench::tensorflow {

int Step::in(std::size_t input) const {
  if (input >= node_.inputs.size()) {
    fail(ErrorKind::BadModel, "it has {} inputs, expected more", node_.inputs.size());
  }
  const Source& source = node_.inputs[input];
  const auto& made = state_.outputs[static_cast<std::size_t>(source.node)];
  const auto output = static_cast<std::size_t>(source.output);
  if (output >= made.size() || made[output] < 0) {
    fail(ErrorKind::Unsupported, "it reads output {} of a node before it, which is not read",
         source.output);
  }
  return made[output];
}

const tflite::TensorItem& Step::item(int tensor) const {
  return state_.program.tensors[static_cast<std::size_t>(tensor)];
}

tflite::TensorItem& Step::mutable_item(int tensor) {
  return state_.program.tensors[static_cast<std::size_t>(tensor)];
}

/// Integers that stand for floats are floats to TensorFlow.
DType Step::dtype(std::size_t input) const {
  const tflite::TensorItem& from = item(in(input));
  return from.quantized() ? DType::Float32 : from.dtype;
}

std::int64_t Step::axis(std::int64_t given, std::int64_t of) const {
  const std::int64_t result = given < 0 ? given + of : given;
  if (result < 0 || result >= of) {
    fail(ErrorKind::BadModel, "it names dimension {} of {}", given, of);
  }
  return result;
}

bool Step::is_only_reader(std::size_t input) const {
  const Source& source = node_.inputs[input];
  return state_.readers[static_cast<std::size_t>(source.node)] == 1;
}

const Tensor* Step::constant(std::size_t input) const {
  const auto& data = item(in(input)).data;
  return data ? &*data : nullptr;
}

Tensor Step::need_constant(std::size_t input) const {
  const Tensor* found = constant(input);
  if (found == nullptr) {
    fail(ErrorKind::Unsupported, "input {} is computed, but only a constant is read here", input);
  }
  return *found;
}

std::optional<Ints> Step::sizes(std::size_t input) const {
  const auto known = state_.sizes.find(in(input));
  if (known != state_.sizes.end()) return known->second;
  const Tensor* data = constant(input);
  if (data == nullptr) return std::nullopt;
  if (data->dtype() != DType::Int32 && data->dtype() != DType::Int64) {
    fail(ErrorKind::BadModel, "input {} should hold integers", input);
  }
  constexpr std::int64_t kMost = 1 << 20;
  if (data->size() > kMost) return std::nullopt;
  const Tensor wide = convert(*data, DType::Int64);
  return Ints(wide.data<std::int64_t>().begin(), wide.data<std::int64_t>().end());
}

Ints Step::need_ints(std::size_t input) const {
  const auto found = sizes(input);
  if (!found || std::ranges::count(*found, kOpen) > 0) {
    fail(ErrorKind::Unsupported, "input {} is computed, but only a constant is read here", input);
  }
  return *found;
}

std::int64_t Step::need_int(std::size_t input) const {
  const Ints found = need_ints(input);
  if (found.size() != 1) fail(ErrorKind::BadModel, "input {} should hold one integer", input);
  return found.front();
}

/// A constant where all of them are known; otherwise a tensor that only sizes are taken from.
void Step::set_sizes(const Ints& values, const Shape& shape) {
  if (std::ranges::count(values, kOpen) == 0) {
    const Tensor data = Tensor::of<std::int64_t>(shape, std::span<const std::int64_t>(values));
    return set(add_constant(result_name(), convert(data, DType::Int32)));
  }
  const int tensor = add_tensor(result_name(), shape, DType::Int32);
  state_.sizes.emplace(tensor, values);
  set(tensor);
}

const wire::AttrValue* Step::attribute(std::string_view name) const {
  const auto found = node_.def.attr().find(std::string(name));
  return found == node_.def.attr().end() ? nullptr : &found->second;
}

std::int64_t Step::number(std::string_view name, std::int64_t otherwise) const {
  const wire::AttrValue* found = attribute(name);
  return found == nullptr || !found->has_i() ? otherwise : found->i();
}

double Step::real(std::string_view name, double otherwise) const {
  const wire::AttrValue* found = attribute(name);
  return found == nullptr || !found->has_f() ? otherwise : found->f();
}

bool Step::flag(std::string_view name, bool otherwise) const {
  const wire::AttrValue* found = attribute(name);
  return found == nullptr || !found->has_b() ? otherwise : found->b();
}

std::string Step::text(std::string_view name, std::string_view otherwise) const {
  const wire::AttrValue* found = attribute(name);
  return found == nullptr || !found->has_s() ? std::string(otherwise) : found->s();
}

Ints Step::numbers(std::string_view name) const {
  const wire::AttrValue* found = attribute(name);
  if (found == nullptr || !found->has_list()) return {};
  return {found->list().i().begin(), found->list().i().end()};
}

DType Step::type(std::string_view name, DType otherwise) const {
  const wire::AttrValue* found = attribute(name);
  return found == nullptr || !found->has_type() ? otherwise : dtype_of(found->type());
}

std::string Step::result_name(std::size_t output) const {
  return output == 0 ? node_.def.name() : format("{}:{}", node_.def.name(), output);
}

int Step::add_tensor(const std::string& name, const Shape& shape, DType dtype) {
  expect_sound(shape);
  tflite::TensorItem made;
  made.name = name.empty() ? "tensor" : name;
  made.shape = shape;
  made.dtype = dtype;
  if (dtype == DType::Undefined || dtype == DType::String) {
    fail(ErrorKind::Unsupported, "its elements are of a type that is not read");
  }
  state_.program.tensors.push_back(std::move(made));
  return static_cast<int>(state_.program.tensors.size() - 1);
}

int Step::add_constant(const std::string& name, const Tensor& data) {
  const int tensor = add_tensor(name, data.shape(), data.dtype());
  state_.program.tensors.back().data = data;
  return tensor;
}

int Step::add_ints(const Ints& values) {
  const Tensor data =
      Tensor::of<std::int64_t>({std::ssize(values)}, std::span<const std::int64_t>(values));
  return add_constant(result_name() + "/ints", convert(data, DType::Int32));
}

namespace {

/// What a file would leave out.
void complete(tflite::OpItem& op) {
  const tflite::OpRow* row = tflite::find_row(op.name);
  if (row == nullptr) return;
  for (const tflite::OptionField& field : tflite::fields_of(*row)) {
    if (std::ranges::find(op.options, field.name, &tflite::Option::name) != op.options.end()) {
      continue;
    }
    std::int64_t otherwise = 0;
    const std::string_view text = field.otherwise;
    std::from_chars(text.data(), text.data() + text.size(), otherwise);
    if (field.type == 'f') {
      op.options.push_back({field.name, static_cast<double>(otherwise)});
    } else if (field.type == 'v') {
      op.options.push_back({field.name, Ints{}});
    } else {
      op.options.push_back({field.name, otherwise});
    }
  }
}

}  // namespace

tflite::OpItem& Step::push(std::string_view tflite_op, const std::vector<int>& inputs,
                           const Options& options) {
  for (const int input : inputs) {
    if (!state_.sizes.contains(input)) continue;
    fail(ErrorKind::Unsupported,
         "it computes with the sizes of an open input; freeze the graph with a known input shape");
  }
  tflite::OpItem made;
  made.name = tflite_op;
  made.inputs = inputs;
  made.options = options;
  made.index = static_cast<int>(state_.program.ops.size());
  made.origin = format("node '{}' ({})", node_.def.name(), op());
  complete(made);
  state_.program.ops.push_back(std::move(made));
  return state_.program.ops.back();
}

int Step::make(std::string_view tflite_op, const std::vector<int>& inputs, const Shape& shape,
               DType dtype, const Options& options, void (*read)(tflite::Op&)) {
  const int tensor = add_tensor(result_name(), shape, dtype);
  tflite::OpItem& made = push(tflite_op, inputs, options);
  state_.makers.emplace(tensor, made.index);
  made.outputs = {tensor};
  made.read = read;
  return tensor;
}

void Step::make_all(std::string_view tflite_op, const std::vector<int>& inputs,
                    const std::vector<Shape>& shapes, DType dtype, const Options& options) {
  std::vector<int> tensors;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    tensors.push_back(add_tensor(result_name(i), shapes[i], dtype));
    set(tensors.back(), i);
  }
  push(tflite_op, inputs, options).outputs = std::move(tensors);
}

void Step::set(int tensor, std::size_t output) {
  auto& made = state_.outputs[static_cast<std::size_t>(index_)];
  if (made.size() <= output) made.resize(output + 1, -1);
  made[output] = tensor;
}

Shape broadcast(const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  const std::size_t missing = longer.size() - shorter.size();
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    std::int64_t& dim = result[i + missing];
    if (shorter[i] == dim || shorter[i] == 1) continue;
    if (dim == 1 || dim == -1) {
      dim = shorter[i];
    } else if (shorter[i] != -1) {
      fail(ErrorKind::BadModel, "shapes {} and {} do not fit", to_string(a), to_string(b));
    }
  }
  return result;
}

void expect_sound(const Shape& shape) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  constexpr std::size_t kMaxRank = 8;
  std::int64_t count = 1;
  bool sound = shape.size() <= kMaxRank;
  for (const std::int64_t dim : shape) {
    sound = sound && dim >= -1 && dim <= kMost && count <= kMost;
    if (sound && dim > 0) count *= dim;
  }
  if (!sound || count > kMost) {
    fail(ErrorKind::BadModel, "it makes a tensor of shape {}", to_string(shape));
  }
}

}  // namespace quench::tensorflow
