// SPDX-License-Identifier: Apache-2.0
// Inputs, arguments and results of an operator.
#include "formats/mindir/op.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/format.h"

namespace quench::mindir {

using Kind = Entry::Kind;

Entry entry_of(ValueId value) {
  Entry result;
  result.kind = Kind::Value;
  result.value = value;
  return result;
}

bool Op::has(std::size_t input) const {
  return input < inputs_.size() && inputs_[input].kind != Kind::None;
}

const Entry& Op::entry(std::size_t input) const {
  if (!has(input)) fail(ErrorKind::BadModel, "input {} is left out, but it needs it", input);
  return inputs_[input];
}

namespace {

ValueId value_of(GraphMaker& make, const Entry& from) {
  switch (from.kind) {
    case Kind::Value:
      return from.value;
    case Kind::Tensor:
      return make.constant(from.tensor);
    case Kind::Int:
      return make.scalar(static_cast<double>(from.number), DType::Int64);
    case Kind::Real:
      return make.scalar(from.real);
    case Kind::List:
      if (!from.list.empty() && from.list[0].kind != Kind::Int) {
        return value_of(make, from.list[0]);
      }
      break;
    default:
      break;
  }
  fail(ErrorKind::BadModel, "an input is no tensor");
}

}  // namespace

ValueId Op::in(std::size_t input) { return value_of(make_, entry(input)); }

std::vector<ValueId> Op::all_in() {
  std::vector<ValueId> values;
  const bool tuple = has(0) && inputs_[0].kind == Kind::List;
  for (const Entry& each : tuple ? inputs_[0].list : inputs_) {
    if (each.kind == Kind::Value || each.kind == Kind::Tensor) {
      values.push_back(value_of(make_, each));
    }
  }
  if (values.empty()) fail(ErrorKind::BadModel, "it has no tensors to work on");
  return values;
}

const Tensor* Op::constant(std::size_t input) {
  const Entry& from = entry(input);
  if (from.kind == Kind::Tensor) return &from.tensor;
  return from.kind == Kind::Value ? make_.graph().constant(from.value) : nullptr;
}

std::optional<Tensor> Op::copy(std::size_t input) {
  const Tensor* found = constant(input);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

std::optional<Shape> Op::shape(std::size_t input) const {
  const Entry& from = entry(input);
  if (from.kind == Kind::Tensor) return from.tensor.shape();
  return from.shape;
}

const Entry* Op::argument(std::string_view name, std::size_t position) const {
  const auto found = attributes_.find(name);
  if (found != attributes_.end() && found->second.kind != Kind::None) return &found->second;
  return position < inputs_.size() && inputs_[position].kind != Kind::None ? &inputs_[position]
                                                                           : nullptr;
}

std::optional<Ints> Op::ints(std::string_view name, std::size_t position) const {
  const Entry* found = argument(name, position);
  if (found == nullptr) return std::nullopt;
  const Tensor* data = found->kind == Kind::Tensor ? &found->tensor : nullptr;
  if (found->kind == Kind::Value) data = make_.graph().constant(found->value);
  Ints result;
  if (data != nullptr) {
    constexpr std::int64_t kMost = 1 << 16;
    if (info(data->dtype()).is_float || data->size() > kMost) return std::nullopt;
    const Tensor wide = convert(*data, DType::Int64);
    result.assign(wide.data<std::int64_t>().begin(), wide.data<std::int64_t>().end());
    return result;
  }
  if (found->kind == Kind::Int) return Ints{found->number};
  if (found->kind != Kind::List) return std::nullopt;
  for (const Entry& each : found->list) {
    if (each.kind != Kind::Int) return std::nullopt;
    result.push_back(each.number);
  }
  return result;
}

Ints Op::need_ints(std::string_view name, std::size_t position) const {
  const auto found = ints(name, position);
  if (!found) {
    fail(ErrorKind::Unsupported, "its {} is missing or computed; only constants are read", name);
  }
  return *found;
}

std::int64_t Op::number(std::string_view name, std::int64_t otherwise, std::size_t position) const {
  const auto found = ints(name, position);
  return found && found->size() == 1 ? found->front() : otherwise;
}

double Op::real(std::string_view name, double otherwise, std::size_t position) const {
  const Entry* found = argument(name, position);
  if (found == nullptr) return otherwise;
  if (found->kind == Kind::Real) return found->real;
  if (found->kind == Kind::Int) return static_cast<double>(found->number);
  const Tensor* data = found->kind == Kind::Tensor ? &found->tensor : nullptr;
  if (found->kind == Kind::Value) data = make_.graph().constant(found->value);
  if (data != nullptr && data->size() == 1) return to_float(*data)[0];
  return otherwise;
}

std::string Op::text(std::string_view name, std::string_view otherwise) const {
  const Entry* found = argument(name);
  return found == nullptr || found->kind != Kind::Text ? std::string(otherwise) : found->text;
}

void Op::set(ValueId value) { result_ = entry_of(value); }

void Op::set_all(const std::vector<ValueId>& values) {
  result_ = {};
  result_.kind = Kind::List;
  for (const ValueId value : values) result_.list.push_back(entry_of(value));
}

ValueId gelu(GraphMaker& make, ValueId x, bool approximate) {
  ValueId inner = kNoValue;
  if (approximate) {
    constexpr double kCubic = 0.044715;
    const ValueId cube = make.node("Mul", {x, make.node("Mul", {x, x})});
    const ValueId sum = make.node("Add", {x, make.node("Mul", {cube, make.scalar(kCubic)})});
    inner =
        make.node("Tanh", {make.node("Mul", {sum, make.scalar(std::sqrt(2 / std::numbers::pi))})});
  } else {
    inner = make.node("Erf", {make.node("Div", {x, make.scalar(std::numbers::sqrt2)})});
  }
  const ValueId gate = make.node("Add", {inner, make.scalar(1)});
  return make.node("Mul", {make.node("Mul", {x, gate}), make.scalar(0.5)});
}

ValueId activate(Op& op, ValueId x, std::int64_t number) {
  GraphMaker& make = op.make();
  switch (number) {
    case 0:
      return x;
    case 1:
      return make.node("Relu", {x});
    case 2:
      return make.node("Sigmoid", {x});
    case 3:
      return make.clip(x, 0, 6);
    case 4:
      return make.node("Elu", {x}, {{"alpha", static_cast<float>(op.real("alpha", 1))}});
    case 5:
      return make.node("LeakyRelu", {x}, {{"alpha", static_cast<float>(op.real("alpha", 0))}});
    case 6:
      return make.node("Abs", {x});
    case 7:
      return make.clip(x, -1, 1);
    case 8:
      return make.node("Softsign", {x});
    case 9:
      return make.node("Softplus", {x});
    case 10:
      return make.node("Tanh", {x});
    case 12:
      return make.node("HardSwish", {x});
    case 13:
      return make.node("HardSigmoid", {x}, {{"alpha", 1.0F / 6}});
    case 16:
      return make.clip(x, op.real("min_val", -1), op.real("max_val", 1));
    case 17:
      return make.node("Sign", {x});
    case 18:
      return make.node("Mul", {x, make.node("Sigmoid", {x})});
    case 19:
      return gelu(make, x, op.number("approximate", 0) != 0);
    default:
      fail(ErrorKind::Unsupported, "its activation has number {}, which is not known", number);
  }
}

ValueId Op::activated(ValueId value) {
  return activate(*this, value, number("activation_type", 0));
}

}  // namespace quench::mindir
