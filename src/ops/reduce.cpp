// SPDX-License-Identifier: Apache-2.0
// Reductions, ArgMax and ArgMin.
#include <algorithm>

#include "ops/context.h"

namespace quench::ops {
namespace {

Dims reduced(const Dims& input, const std::vector<bool>& axes, bool keep) {
  Dims result;
  for (std::size_t i = 0; i < input.size(); ++i) {
    if (!axes[i]) {
      result.push_back(input[i]);
    } else if (keep) {
      result.push_back(Dim{1, {}});
    }
  }
  return result;
}

/// The product or sum of a shape, as Size would give it.
void propagate_product(InferContext& context) {
  const SymInts* values = context.ints(0);
  if (values == nullptr || context.node().op_type != "ReduceProd") return;
  SymInt result = 1;
  for (const SymInt& value : *values) result = result * value;
  context.set_ints(0, {result});
}

}  // namespace

void infer_reduce(InferContext& context) {
  const Node& node = context.node();
  const Dims* input = context.shape(0);
  context.set(0, context.dtype(0), std::nullopt);
  if (input == nullptr) return;
  const bool keep = node.get_int("keepdims", 1) != 0;
  const auto axes = context.parameter("axes", 1);
  if (axes.given && !axes.numbers) {
    if (keep) context.set(0, context.dtype(0), unknown_dims(input->size()));
    return;
  }
  std::vector<bool> flags(input->size(), node.get_int("noop_with_empty_axes", 0) == 0);
  if (axes.given && !axes.numbers->empty()) flags = checked_axes(*axes.numbers, input->size());
  context.set(0, context.dtype(0), reduced(*input, flags, keep));
  if (std::all_of(flags.begin(), flags.end(), [](bool f) { return f; })) propagate_product(context);
}

void infer_arg_reduce(InferContext& context) {
  const Dims* input = context.shape(0);
  context.set(0, DType::Int64, std::nullopt);
  if (input == nullptr) return;
  std::vector<bool> flags(input->size(), false);
  flags[checked_axis(context.node().get_int("axis", 0), input->size())] = true;
  context.set(0, DType::Int64, reduced(*input, flags, context.node().get_int("keepdims", 1) != 0));
}

}  // namespace quench::ops
