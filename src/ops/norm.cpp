// SPDX-License-Identifier: Apache-2.0
// Normalisation, Dropout and losses.
#include <algorithm>

#include "ops/context.h"

namespace quench::ops {
namespace {

/// Scale, bias, mean and variance have one element a channel.
void expect_channels(const InferContext& context, std::size_t index, const Dim& channels) {
  const Dims* dims = context.shape(index);
  if (dims == nullptr || dims->size() != 1 || unify(dims->front(), channels)) return;
  fail(ErrorKind::BadModel, "input {} is {}, but there are {} channels", index, shape_text(*dims),
       channels.value);
}

std::optional<Dims> copy(const Dims* dims) {
  return dims == nullptr ? std::nullopt : std::optional(*dims);
}

/// Mean and deviation keep the dimensions before `axis`; the normalised ones become 1.
std::optional<Dims> statistics_shape(const InferContext& context) {
  const Dims* input = context.shape(0);
  if (input == nullptr) return std::nullopt;
  Dims result = *input;
  const std::size_t axis = checked_axis(context.node().get_int("axis", -1), result.size());
  for (std::size_t i = axis; i < result.size(); ++i) result[i] = Dim{1, {}};
  return result;
}

void infer_loss(InferContext& context) {
  const Dims* target = context.shape(1);
  if (context.node().get_string("reduction", "mean") != "none") {
    context.set(0, context.dtype(0), Dims{});
  } else {
    context.set(0, context.dtype(0), copy(target));
  }
}

}  // namespace

void infer_batch_norm(InferContext& context) {
  const Dims* input = context.shape(0);
  const auto outputs =
      std::ranges::count_if(context.node().outputs, [](ValueId id) { return id != kNoValue; });
  if (context.opset() >= 14 && context.node().get_int("training_mode", 0) == 0 && outputs > 1) {
    fail(ErrorKind::BadModel, "it has {} outputs, but only one where training_mode is 0", outputs);
  }
  Dims channels{Dim{}};
  if (input != nullptr) {
    channels[0] = input->size() > 1 ? (*input)[1] : Dim{1, {}};
    for (std::size_t i = 1; i < 5; ++i) expect_channels(context, i, channels[0]);
  }
  context.set_like(0, 0);
  for (std::size_t i = 1; i < context.num_outputs(); ++i) {
    context.set(i, context.dtype(i < 3 ? i + 2 : 3), channels);
  }
}

void infer_instance_norm(InferContext& context) {
  expect_min_rank(context, 0, 3);
  if (const Dims* input = context.shape(0)) {
    expect_channels(context, 1, (*input)[1]);
    expect_channels(context, 2, (*input)[1]);
  }
  context.set_like(0, 0);
}

void infer_group_norm(InferContext& context) {
  const Dims* input = context.shape(0);
  const std::int64_t groups = context.node().get_int("num_groups", 1);
  if (groups < 1) fail(ErrorKind::BadModel, "num_groups is {}", groups);
  expect_min_rank(context, 0, 2);
  if (input != nullptr && (*input)[1].known() && (*input)[1].value % groups != 0) {
    fail(ErrorKind::BadModel, "num_groups {} does not divide the {} channels", groups,
         (*input)[1].value);
  }
  context.set_like(0, 0);
}

void infer_layer_norm(InferContext& context) {
  context.set_like(0, 0);
  auto dims = statistics_shape(context);
  const std::int64_t stash = context.node().get_int("stash_type", 1);
  context.set(1, static_cast<DType>(stash), dims);
  context.set(2, static_cast<DType>(stash), std::move(dims));
}

void infer_rms_norm(InferContext& context) {
  statistics_shape(context);
  context.set_like(0, 0);
}

void infer_lp_norm(InferContext& context) {
  if (const Dims* input = context.shape(0)) {
    checked_axis(context.node().get_int("axis", -1), input->size());
  }
  context.set_like(0, 0);
}

void infer_dropout(InferContext& context) {
  context.set_like(0, 0);
  // Before opset 10 the mask had the type of the data.
  context.set(1, context.opset() < 10 ? context.dtype(0) : DType::Bool, copy(context.shape(0)));
}

void infer_nll_loss(InferContext& context) { infer_loss(context); }

void infer_cross_entropy(InferContext& context) {
  infer_loss(context);
  context.set_like(1, 0);
}

}  // namespace quench::ops
