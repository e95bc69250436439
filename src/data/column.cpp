// SPDX-License-Identifier: Apache-2.0
// What model inputs want, read from their declared types.
#include "data/column.h"

#include <algorithm>

#include "base/format.h"

namespace quench::data {
namespace {

bool same_count(const std::optional<std::vector<Dim>>& a,
                const std::optional<std::vector<Dim>>& b) {
  if (!a || !b) return true;
  if (a->empty() || b->empty()) return false;
  const Dim& first = a->front();
  const Dim& second = b->front();
  return first.known() == second.known() && (!first.known() || first.value == second.value);
}

}  // namespace

std::vector<Dim> InputSpec::sample_dims() const {
  if (!dims) return {};
  return {dims->begin() + (batched ? 1 : 0), dims->end()};
}

std::string InputSpec::describe() const {
  return format("input '{}' {}", name, to_string(ValueType::tensor(dtype, dims)));
}

std::vector<InputSpec> describe_inputs(const std::vector<Value>& inputs) {
  std::vector<InputSpec> specs;
  for (const Value& input : inputs) {
    if (input.type.kind == ValueType::Kind::Other || input.type.dtype == DType::String) {
      fail(ErrorKind::Unsupported,
           "input '{}' is not a tensor of numbers; it cannot be fed from files", input.name);
    }
    specs.push_back({input.name, input.type.dtype, input.type.shape, true});
  }
  const bool batched = std::all_of(specs.begin(), specs.end(), [&](const InputSpec& spec) {
    return (!spec.dims || !spec.dims->empty()) && same_count(spec.dims, specs.front().dims);
  });
  for (InputSpec& spec : specs) spec.batched = batched;
  return specs;
}

bool fits(const Shape& shape, const std::vector<Dim>& dims) {
  return std::equal(
      shape.begin(), shape.end(), dims.begin(), dims.end(),
      [](std::int64_t size, const Dim& dim) { return !dim.known() || dim.value == size; });
}

}  // namespace quench::data
