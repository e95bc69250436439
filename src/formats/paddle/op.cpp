// SPDX-License-Identifier: Apache-2.0
// Inputs and attributes of an operator, as its row describes them.
#include "formats/paddle/op.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ranges>

#include "base/format.h"
#include "formats/paddle/translate.h"

namespace quench::paddle {
namespace {

double parse(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    fail(ErrorKind::Internal, "'{}' in a row of the table is no number", text);
  }
  return value;
}

std::vector<double> parse_list(std::string_view text) {
  std::vector<double> values;
  for (const std::string_view part : parts_of(text, ',')) values.push_back(parse(part));
  return values;
}

std::vector<std::int64_t> whole(std::span<const double> values) {
  std::vector<std::int64_t> result;
  for (const double value : values) result.push_back(static_cast<std::int64_t>(value));
  return result;
}

/// A float that stands where an integer is wanted; what does not fit is not one.
std::optional<std::int64_t> to_integer(double value) {
  if (!(std::abs(value) < 9e18) || value != std::trunc(value)) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

[[noreturn]] void fail_type(std::string_view name, std::string_view wanted) {
  fail(ErrorKind::BadModel, "its attribute '{}' is not {}, or has a type that is not known", name,
       wanted);
}

}  // namespace

Op::Op(Translator& translator, const Block& block, const OpItem& item, const OpRow& row)
    : translator_(translator),
      block_(block),
      item_(item),
      row_(row),
      first_node_(translator.graph().nodes.size()),
      first_value_(translator.graph().values().size()) {
  if (translator.scope().outer != nullptr) return;  // blocks inside are not written back
  for (const Argument& argument : item.inputs) {
    for (const std::string& name : argument.variables) {
      const ValueId value = translator.find(name);
      if (value != kNoValue) variables_[value] = name;
    }
  }
}

int Op::opset() const { return translator_.opset(); }

const std::vector<std::string>* Op::variables(const std::vector<Argument>& list,
                                              std::string_view name) const {
  const auto found = std::ranges::find(list, name, &Argument::name);
  return found == list.end() || found->variables.empty() ? nullptr : &found->variables;
}

bool Op::has(std::string_view input) const { return variables(item_.inputs, input) != nullptr; }

bool Op::makes(std::string_view output) const {
  return variables(item_.outputs, output) != nullptr;
}

std::size_t Op::num_outputs(std::string_view output) const {
  const auto* names = variables(item_.outputs, output);
  return names == nullptr ? 0 : names->size();
}

std::vector<std::string> Op::names(std::string_view argument) const {
  const auto* found = variables(item_.inputs, argument);
  if (found == nullptr) found = variables(item_.outputs, argument);
  return found == nullptr ? std::vector<std::string>() : *found;
}

const Block& Op::inner_block(std::string_view name) {
  const Attr* found = item_.find(name);
  const auto* block = found == nullptr ? nullptr : std::get_if<BlockIndex>(&found->data);
  if (block == nullptr) fail(ErrorKind::BadModel, "it has no block '{}'", name);
  return translator_.inner_block(block_, block->index);
}

ValueId Op::in(std::string_view input, std::size_t index) {
  const auto* names = variables(item_.inputs, input);
  if (names == nullptr || index >= names->size()) {
    fail(ErrorKind::BadModel, "its input '{}' is missing", input);
  }
  return translator_.lookup((*names)[index]);
}

ValueId Op::in_or_none(std::string_view input) { return has(input) ? in(input) : kNoValue; }

std::vector<ValueId> Op::ins(std::string_view input) {
  std::vector<ValueId> values;
  const auto* names = variables(item_.inputs, input);
  if (names == nullptr) return values;
  for (const std::string& name : *names) values.push_back(translator_.lookup(name));
  return values;
}

const VarItem* Op::variable(std::string_view argument, std::size_t index) const {
  const auto* names = variables(item_.inputs, argument);
  if (names == nullptr) names = variables(item_.outputs, argument);
  if (names == nullptr || index >= names->size()) return nullptr;
  return translator_.variable(block_, (*names)[index]);
}

DType Op::dtype(std::string_view argument) const {
  const auto* names = variables(item_.inputs, argument);
  if (names != nullptr) {
    const Tensor* tensor = constant_of(translator_.find(names->front()));
    if (tensor != nullptr) return tensor->dtype();
  }
  const VarItem* var = variable(argument, 0);
  return var == nullptr || var->dtype == DType::Undefined ? DType::Float32 : var->dtype;
}

std::optional<Shape> Op::shape(std::string_view argument, std::size_t index) const {
  const auto* names = variables(item_.inputs, argument);
  if (names != nullptr && index < names->size()) {
    const Tensor* tensor = constant_of(translator_.find((*names)[index]));
    if (tensor != nullptr) return tensor->shape();
  }
  const VarItem* var = variable(argument, index);
  return var == nullptr ? std::nullopt : var->shape;
}

std::optional<std::int64_t> Op::rank(std::string_view argument, std::size_t index) const {
  const auto dims = shape(argument, index);
  return dims ? std::optional(std::ssize(*dims)) : std::nullopt;
}

std::int64_t Op::need_rank(std::string_view argument, std::size_t index) const {
  const auto found = rank(argument, index);
  if (!found) {
    fail(ErrorKind::Unsupported, "the program does not say how many dimensions '{}' has", argument);
  }
  return *found;
}

Shape Op::need_shape(std::string_view argument) const {
  const auto found = shape(argument);
  if (!found || std::ranges::any_of(*found, [](std::int64_t dim) { return dim < 0; })) {
    fail(ErrorKind::Unsupported, "it is read only where the program says all sizes of '{}'",
         argument);
  }
  return *found;
}

AttributeNote Op::note(std::string_view name) const {
  if (const auto found = find_attribute(row_, name)) return *found;
  fail(ErrorKind::Internal, "the row of '{}' does not list '{}'", row_.name, name);
}

std::string_view Op::default_of(std::string_view name) const {
  const AttributeNote found = note(name);
  if (!found.otherwise) {
    fail(ErrorKind::BadModel, "its attribute '{}' is missing, and it has no default", name);
  }
  return *found.otherwise;
}

const Attr* Op::attribute(std::string_view name) const {
  const Attr* found = item_.find(name);
  const std::string_view other = found == nullptr ? note(name).other_name : std::string_view();
  return other.empty() ? found : item_.find(other);
}

bool Op::given(std::string_view name) const { return attribute(name) != nullptr; }

bool Op::flag(std::string_view name) const {
  const Attr* found = attribute(name);
  if (found == nullptr) return default_of(name) == "true";
  if (const auto* value = std::get_if<bool>(&found->data)) return *value;
  if (const auto* value = std::get_if<std::int64_t>(&found->data)) return *value != 0;
  fail_type(name, "true or false");
}

double Op::real(std::string_view name) const {
  const Attr* found = attribute(name);
  if (found == nullptr) return parse(default_of(name));
  if (const auto* value = std::get_if<double>(&found->data)) return *value;
  if (const auto* value = std::get_if<std::int64_t>(&found->data)) {
    return static_cast<double>(*value);
  }
  if (const auto* value = std::get_if<bool>(&found->data)) return *value ? 1 : 0;
  fail_type(name, "a number");
}

std::int64_t Op::integer(std::string_view name) const {
  const Attr* found = attribute(name);
  if (found != nullptr) {
    if (const auto* value = std::get_if<std::int64_t>(&found->data)) return *value;
  }
  const auto value = to_integer(real(name));
  if (!value) fail_type(name, "an integer");
  return *value;
}

std::string Op::text(std::string_view name) const {
  const Attr* found = attribute(name);
  if (found == nullptr) return std::string(default_of(name));
  if (const auto* value = std::get_if<std::string>(&found->data)) return *value;
  fail_type(name, "a text");
}

std::vector<std::int64_t> Op::integers(std::string_view name) const {
  const Attr* found = attribute(name);
  if (found == nullptr) return whole(parse_list(default_of(name)));
  if (const auto* values = std::get_if<std::vector<std::int64_t>>(&found->data)) return *values;
  if (const auto* value = std::get_if<std::int64_t>(&found->data)) return {*value};
  const auto* values = std::get_if<std::vector<double>>(&found->data);
  if (values == nullptr) fail_type(name, "a list of integers");
  for (const double value : *values) {
    if (!to_integer(value)) fail_type(name, "a list of integers");
  }
  return whole(*values);
}

std::vector<double> Op::reals(std::string_view name) const {
  const Attr* found = attribute(name);
  if (found == nullptr) return parse_list(default_of(name));
  if (const auto* values = std::get_if<std::vector<double>>(&found->data)) return *values;
  if (const auto* values = std::get_if<std::vector<std::int64_t>>(&found->data)) {
    return {values->begin(), values->end()};
  }
  return {real(name)};
}

std::optional<Tensor> Op::literal(DType dtype) const {
  for (const std::string_view name :
       {"values", "fp32_values", "int32_values", "int64_values", "bool_values"}) {
    if (!given(name)) continue;
    const std::vector<double> values = reals(name);
    if (values.empty()) continue;
    const Shape shape = integers("shape");
    if (num_elements(shape) != std::ssize(values)) {
      fail(ErrorKind::BadModel, "its shape {} does not take its {} values", to_string(shape),
           values.size());
    }
    return convert(Tensor::of<double>(shape, std::span<const double>(values)), dtype);
  }
  return std::nullopt;
}

std::vector<std::string> Op::texts(std::string_view name) const {
  const Attr* found = attribute(name);
  if (found == nullptr) return {};
  if (const auto* values = std::get_if<std::vector<std::string>>(&found->data)) return *values;
  fail_type(name, "a list of texts");
}

std::vector<ValueId> Op::tensors_of(std::string_view name) {
  std::vector<ValueId> found = ins(name);
  for (const std::string_view token : parts_of(row_.inputs, ' ')) {
    const std::size_t colon = token.find(':');
    if (colon == std::string_view::npos || token.substr(0, colon) != name) continue;
    for (const std::string_view input : parts_of(token.substr(colon + 1), ',')) {
      if (found.empty()) found = ins(input);
    }
  }
  return found;
}

ValueId Op::tensor_of(std::string_view name) {
  const std::vector<ValueId> found = tensors_of(name);
  return found.empty() ? kNoValue : found.front();
}

IntList Op::list(std::string_view name) {
  const std::vector<ValueId> found = tensors_of(name);
  if (found.empty()) return {.numbers = integers(name), .value = kNoValue};
  IntList result;
  std::vector<ValueId> parts;
  bool constant = true;
  for (const ValueId value : found) {
    if (const Tensor* tensor = constant_of(value)) {
      const Tensor numbers = convert(*tensor, DType::Int64);
      const auto data = numbers.data<std::int64_t>();
      result.numbers.insert(result.numbers.end(), data.begin(), data.end());
    } else {
      constant = false;
    }
  }
  if (constant) return result;
  for (const ValueId value : found) {
    parts.push_back(cast(reshape(value, {-1}), DType::Int64));
  }
  const ValueId joined =
      parts.size() == 1 ? parts.front() : node("Concat", parts, {{"axis", std::int64_t{0}}});
  return {.numbers = {}, .value = joined};
}

std::vector<std::int64_t> Op::numbers(std::string_view name) {
  IntList found = list(name);
  if (found.computed()) {
    fail(ErrorKind::Unsupported, "its '{}' is computed, and it is read only where it is a constant",
         name);
  }
  return std::move(found.numbers);
}

std::int64_t Op::single(std::string_view name) {
  const std::vector<std::int64_t> found = numbers(name);
  if (found.size() != 1) {
    fail(ErrorKind::BadModel, "its '{}' is {} numbers; one is wanted", name, found.size());
  }
  return found.front();
}

double Op::number(std::string_view name) {
  const ValueId value = tensor_of(name);
  if (value == kNoValue) return real(name);
  const Tensor* tensor = constant_of(value);
  if (tensor == nullptr || tensor->size() != 1) {
    fail(ErrorKind::Unsupported, "its '{}' is computed, and it is read only where it is a constant",
         name);
  }
  return to_float(*tensor)[0];
}

}  // namespace quench::paddle
