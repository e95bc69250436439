// SPDX-License-Identifier: Apache-2.0
// Inputs, options and results of an operator.
#include "formats/tflite/op.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/format.h"

namespace quench::tflite {

Op::Op(Translator& translator, const OpItem& item) : translator_(translator), item_(item) {
  if (item.outputs.empty()) fail(ErrorKind::BadModel, "it makes nothing");
  name_nodes();
}

void Op::name_nodes() {
  make().name_after(item_.name, translator_.tensor(item_.outputs.front()).name);
}

bool Op::has(std::size_t input) const {
  return input < item_.inputs.size() && item_.inputs[input] >= 0;
}

const TensorItem& Op::in_item(std::size_t input) const {
  if (!has(input)) fail(ErrorKind::BadModel, "input {} is left out, but it needs it", input);
  return translator_.tensor(item_.inputs[input]);
}

const TensorItem& Op::out_item(std::size_t output) const {
  if (output >= item_.outputs.size()) fail(ErrorKind::BadModel, "it has no output {}", output);
  return translator_.tensor(item_.outputs[output]);
}

Layout Op::layout() const {
  const std::int64_t wanted = out_item().rank();
  for (const int input : item_.inputs) {
    if (input < 0 || translator_.tensor(input).rank() != wanted) continue;
    if (translator_.constant(input) != nullptr) continue;
    if (wanted >= 3 && translator_.layout_of(input) == Layout::First) return Layout::First;
  }
  return Layout::Last;
}

Form Op::form(std::size_t input) const {
  const TensorItem& x = in_item(input);
  const TensorItem& y = out_item();
  if (!x.quantized() && !y.quantized()) return Form::Integers;
  const bool same = x.dtype == y.dtype && x.quantization.scale == y.quantization.scale &&
                    x.quantization.zero_point == y.quantization.zero_point;
  return same && x.quantization.scale.size() == 1 ? Form::Integers : Form::Floats;
}

ValueId Op::in(std::size_t input, Layout layout, Form form) {
  (void)in_item(input);
  const ValueId value = translator_.get(item_.inputs[input], layout, form);
  name_nodes();
  return value;
}

ValueId Op::operand(std::size_t input, Layout layout, std::int64_t rank) {
  const TensorItem& item = in_item(input);
  const std::int64_t missing = rank - item.rank();
  if (layout == Layout::Last || missing == 0) return in(input, layout);
  if (missing < 0) fail(ErrorKind::BadModel, "input {} has more dimensions than the result", input);
  const Tensor* data = translator_.constant(item_.inputs[input]);
  Ints shape(static_cast<std::size_t>(rank), 1);
  if (data != nullptr && data->size() == 1) return in(input);
  std::ranges::copy(item.shape, shape.begin() + missing);
  if (data != nullptr && !item.quantized()) {
    return make().constant(permuted(data->reshaped(shape), order_of(layout, rank)));
  }
  const ValueId whole = in(input);
  if (std::ranges::count(shape, -1) <= 1 && is_same_in_memory(shape)) {
    return make().reshape(whole, arranged(shape, layout));
  }
  Ints axes(static_cast<std::size_t>(missing));
  for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<std::int64_t>(i);
  return make().transpose(make().unsqueeze(whole, axes), order_of(layout, rank));
}

void Op::set(ValueId value, Layout layout, Form form, std::size_t output) {
  (void)out_item(output);
  translator_.set(item_.outputs[output], value, layout, form);
  name_nodes();
}

bool Op::hand_on() {
  if (!translator_.is_folded(item_.index)) return false;
  if (form() != Form::Integers) fail(ErrorKind::Unsupported, "it changes the scale");
  set(in(0, Layout::First, Form::Integers), Layout::First, Form::Integers);
  return true;
}

/// Whether the integers of the result reach no further than the activation lets pass.
bool Op::is_implied(double min, double max) const {
  const TensorItem& y = out_item();
  if (!y.quantized() || y.quantization.scale.size() != 1) return false;
  const double scale = y.quantization.scale[0];
  const double low = y.dtype == DType::UInt8 ? 0 : -128;
  const auto zero = static_cast<double>(y.quantization.zero_point[0]);
  return (low - zero) * scale >= min && (low + 255 - zero) * scale <= max;
}

ValueId Op::activated(ValueId value) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  switch (number("fused")) {
    case 0:
      return value;
    case 1:
      return is_implied(0, kInfinite) ? value : make().node("Relu", {value});
    case 2:
      return is_implied(-1, 1) ? value : make().clip(value, -1, 1);
    case 3:
      return is_implied(0, 6) ? value : make().clip(value, 0, 6);
    case 4:
      return make().node("Tanh", {value});
    default:
      fail(ErrorKind::Unsupported, "its activation has number {}, which is not known",
           number("fused"));
  }
}

void Op::set_activated(ValueId value, Layout layout) { set(activated(value), layout); }

std::optional<Ints> Op::ints(std::size_t input) const {
  const TensorItem& item = in_item(input);
  const Tensor* data = translator_.constant(item_.inputs[input]);
  if (data == nullptr) return std::nullopt;
  if (data->dtype() != DType::Int32 && data->dtype() != DType::Int64) {
    fail(ErrorKind::BadModel, "input '{}' should hold integers", item.name);
  }
  const Tensor wide = convert(*data, DType::Int64);
  return Ints(wide.data<std::int64_t>().begin(), wide.data<std::int64_t>().end());
}

Ints Op::need_ints(std::size_t input) const {
  const auto found = ints(input);
  if (!found) {
    fail(ErrorKind::Unsupported, "input '{}' is computed, but only a constant is read here",
         in_item(input).name);
  }
  return *found;
}

std::int64_t Op::need_int(std::size_t input) const {
  const Ints found = need_ints(input);
  if (found.size() != 1) {
    fail(ErrorKind::BadModel, "input '{}' should hold one integer", in_item(input).name);
  }
  return found.front();
}

ValueId Op::as_int64(std::size_t input) {
  if (const auto numbers = ints(input)) return make().ints(*numbers);
  return make().cast(in(input), DType::Int64);
}

std::int64_t Op::axis(std::int64_t given, std::int64_t rank) const {
  const std::int64_t result = given < 0 ? given + rank : given;
  if (result < 0 || result >= rank) {
    fail(ErrorKind::BadModel, "it names dimension {} of {}", given, rank);
  }
  return result;
}

const Option& Op::option(std::string_view name) const {
  const auto found = std::ranges::find(item_.options, name, &Option::name);
  if (found == item_.options.end()) fail(ErrorKind::Internal, "no option {}", name);
  return *found;
}

std::int64_t Op::number(std::string_view name) const {
  return std::get<std::int64_t>(option(name).data);
}

double Op::real(std::string_view name) const { return std::get<double>(option(name).data); }

Ints Op::numbers(std::string_view name) const { return std::get<Ints>(option(name).data); }

}  // namespace quench::tflite
