// SPDX-License-Identifier: Apache-2.0
// Types of values and their text form.
#include "quench/graph.h"

namespace quench {

std::string to_string(const Dim& dim) {
  if (dim.known()) return std::to_string(dim.value);
  return dim.symbol.empty() ? "?" : dim.symbol;
}

ValueType ValueType::tensor(DType dtype, std::optional<std::vector<Dim>> shape) {
  ValueType type;
  type.kind = Kind::Tensor;
  type.dtype = dtype;
  type.shape = std::move(shape);
  return type;
}

ValueType ValueType::of(const Tensor& tensor) {
  std::vector<Dim> dims;
  for (const std::int64_t dim : tensor.shape()) dims.push_back({.value = dim, .symbol = {}});
  return ValueType::tensor(tensor.dtype(), std::move(dims));
}

std::optional<Shape> ValueType::static_shape() const {
  if (!shape) return std::nullopt;
  Shape result;
  for (const Dim& dim : *shape) {
    if (!dim.known()) return std::nullopt;
    result.push_back(dim.value);
  }
  return result;
}

std::string to_string(const ValueType& type) {
  if (type.kind == ValueType::Kind::Other) return "other";
  if (type.kind == ValueType::Kind::Unknown) return "unknown";
  std::string text(name_of(type.dtype));
  if (!type.shape) return text + "[...]";
  text += '[';
  for (std::size_t i = 0; i < type.shape->size(); ++i) {
    if (i != 0) text += ',';
    text += to_string((*type.shape)[i]);
  }
  return text + ']';
}

}  // namespace quench
