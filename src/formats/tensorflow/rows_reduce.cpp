// SPDX-License-Identifier: Apache-2.0
// TensorFlow's operators that make one number of many.
#include <algorithm>
#include <array>

#include "base/format.h"
#include "formats/tensorflow/rows.h"
#include "formats/tensorflow/step.h"

namespace quench::tensorflow {
namespace {

void lower_reduce(Step& step) {
  const bool keep = step.flag("keep_dims", false);
  Ints axes;
  for (const std::int64_t each : step.need_ints(1)) axes.push_back(step.axis(each, step.rank()));
  if (step.as() == "REDUCE_PROD" && step.rank() == 1 && step.state().sizes.contains(step.in())) {
    return step.set_sizes({kOpen}, keep ? Shape{1} : Shape{});
  }
  Shape shape;
  for (std::int64_t i = 0; i < step.rank(); ++i) {
    const bool reduced = std::ranges::count(axes, i) > 0;
    if (!reduced) shape.push_back(step.shape()[static_cast<std::size_t>(i)]);
    if (reduced && keep) shape.push_back(1);
  }
  step.set(step.make(step.as(), {step.in(0), step.add_ints(axes)}, shape, step.dtype(),
                     {{"keep", std::int64_t{keep}}}));
}

void lower_arg(Step& step) {
  const std::int64_t axis = step.axis(step.need_int(1), step.rank());
  Shape shape = step.shape();
  shape.erase(shape.begin() + axis);
  step.set(step.make(step.as(), {step.in(0), step.add_ints({axis})}, shape,
                     step.type("output_type", DType::Int64)));
}

constexpr auto kRows = std::to_array<OpRow>({
    {"Mean", lower_reduce, "MEAN"},
    {"Sum", lower_reduce, "SUM"},
    {"Max", lower_reduce, "REDUCE_MAX"},
    {"Min", lower_reduce, "REDUCE_MIN"},
    {"Prod", lower_reduce, "REDUCE_PROD"},
    {"Any", lower_reduce, "REDUCE_ANY"},
    {"All", lower_reduce, "REDUCE_ALL"},
    {"ArgMax", lower_arg, "ARG_MAX"},
    {"ArgMin", lower_arg, "ARG_MIN"},
});

}  // namespace

std::span<const OpRow> reduce_rows() { return kRows; }

}  // namespace quench::tensorflow
