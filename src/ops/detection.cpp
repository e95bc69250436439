// SPDX-License-Identifier: Apache-2.0
// What detectors end with: NonMaxSuppression, TopK, RoiAlign.
#include "ops/context.h"

namespace quench::ops {
namespace {

SymInt wanted_count(const InferContext& context) {
  const SymInts* values = context.ints(1);
  if (values != nullptr && !values->empty()) return values->front();
  // Before opset 10 k was an attribute.
  if (const auto* k = context.node().get<std::int64_t>("k")) return *k;
  return {};
}

}  // namespace

void infer_non_max_suppression(InferContext& context) {
  expect_rank(context, 0, 3);
  expect_rank(context, 1, 3);
  context.set(0, DType::Int64, Dims{Dim{}, Dim{3, {}}});
}

void infer_top_k(InferContext& context) {
  const Dims* input = context.shape(0);
  context.set(0, context.dtype(0), std::nullopt);
  context.set(1, DType::Int64, std::nullopt);
  if (input == nullptr) return;
  const std::int64_t axis = context.node().get_int("axis", -1);
  Dims result = *input;
  Dim& along = result[checked_axis(axis, result.size())];
  const SymInt count = wanted_count(context);
  if (count.number && (*count.number < 0 || (along.known() && *count.number > along.value))) {
    fail(ErrorKind::BadModel, "k is {}, but axis {} of {} has fewer elements", *count.number, axis,
         shape_text(*input));
  }
  along = count.dim();
  context.set(0, context.dtype(0), result);
  context.set(1, DType::Int64, std::move(result));
}

void infer_roi_align(InferContext& context) {
  expect_rank(context, 0, 4);
  expect_rank(context, 1, 2);
  const Node& node = context.node();
  const Dims* input = context.shape(0);
  const Dims* rois = context.shape(1);
  context.set(0, context.dtype(0),
              Dims{rois == nullptr ? Dim{} : (*rois)[0], input == nullptr ? Dim{} : (*input)[1],
                   SymInt(node.get_int("output_height", 1)).dim(),
                   SymInt(node.get_int("output_width", 1)).dim()});
}

}  // namespace quench::ops
