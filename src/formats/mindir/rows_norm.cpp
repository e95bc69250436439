// SPDX-License-Identifier: Apache-2.0
// MindIR's normalisations.
#include <array>

#include "base/format.h"
#include "formats/mindir/op.h"
#include "formats/mindir/rows.h"

namespace quench::mindir {
namespace {

void read_batch_norm(Op& op) {
  if (op.number("is_training", 0, 5) != 0) {
    fail(ErrorKind::Unsupported,
         "it normalises by the batch, as in training; export the network for inference "
         "(set_train(False))");
  }
  constexpr double kUsual = 1e-5;
  const auto epsilon = static_cast<float>(op.real("epsilon", kUsual, 6));
  std::vector<ValueId> inputs;
  for (std::size_t i = 0; i < 5; ++i) inputs.push_back(op.in(i));
  op.set_all({op.make().node("BatchNormalization", inputs, {{"epsilon", epsilon}})});
}

/// MindSpore Lite's: only mean and variance.
void read_batch_norm_or_lite(Op& op) {
  if (op.num_inputs() != 3) return read_batch_norm(op);
  const Tensor* mean = op.constant(1);
  if (mean == nullptr) fail(ErrorKind::Unsupported, "its mean is computed");
  const std::vector<float> ones(static_cast<std::size_t>(mean->size()), 1);
  const std::vector<float> zeros(ones.size(), 0);
  const auto epsilon = static_cast<float>(op.real("epsilon", 1e-5));
  op.set(op.make().node(
      "BatchNormalization",
      {op.in(0), op.make().floats(ones), op.make().floats(zeros), op.in(1), op.in(2)},
      {{"epsilon", epsilon}}));
}

void read_layer_norm(Op& op) {
  const std::int64_t axis = op.number("begin_norm_axis", -1, 3);
  if (op.number("begin_params_axis", axis, 4) != axis) {
    fail(ErrorKind::Unsupported, "its parameters begin at another dimension than its means");
  }
  const auto epsilon = static_cast<float>(op.real("epsilon", 1e-7, 5));
  op.set_all({op.make().node("LayerNormalization", {op.in(0), op.in(1), op.in(2)},
                             {{"axis", axis}, {"epsilon", epsilon}})});
}

/// Each group of channels by its own mean; ONNX has it from version 18 on.
void read_group_norm(Op& op) {
  const std::int64_t groups = op.number("num_groups", 0, 1);
  // Copies: values of the graph move as others are added.
  const std::optional<Tensor> scale = op.copy(2), shift = op.copy(3);
  if (!scale || !shift || groups <= 0 || groups > scale->size() || scale->size() % groups != 0 ||
      shift->size() != scale->size()) {
    fail(ErrorKind::Unsupported, "its parameters are computed or do not fit {} groups", groups);
  }
  GraphMaker& make = op.make();
  const auto shape = op.shape(0);
  if (!shape || shape->size() != 4) fail(ErrorKind::Unsupported, "its input is no image");
  const ValueId parts = make.reshape(op.in(0), {0, groups, -1});
  const std::vector<float> ones(static_cast<std::size_t>(groups), 1), zeros(ones.size(), 0);
  const ValueId even =
      make.node("InstanceNormalization", {parts, make.floats(ones), make.floats(zeros)},
                {{"epsilon", static_cast<float>(op.real("eps", 1e-5, 4))}});
  const ValueId whole = make.reshape(even, {0, (*shape)[1], (*shape)[2], (*shape)[3]});
  const Shape each{1, scale->size(), 1, 1};
  const ValueId scaled = make.node("Mul", {whole, make.constant(scale->reshaped(each))});
  op.set_all({make.node("Add", {scaled, make.constant(shift->reshaped(each))})});
}

/// y = x * scale + shift along a dimension; MindSpore Lite's.
void read_scale(Op& op) {
  const auto shape = op.shape(0);
  const std::optional<Tensor> scale = op.copy(1);
  if (!shape || !scale) {
    fail(ErrorKind::Unsupported, "its input's dimensions are not known, or its scale is computed");
  }
  const auto rank = std::ssize(*shape);
  const std::int64_t given = op.number("axis", 1);
  const std::int64_t axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis + scale->rank() > rank) {
    fail(ErrorKind::BadModel, "its scale does not fit dimension {}", given);
  }
  Shape whole(static_cast<std::size_t>(rank), 1);
  for (std::int64_t i = 0; i < scale->rank(); ++i) {
    whole[static_cast<std::size_t>(axis + i)] = scale->shape()[static_cast<std::size_t>(i)];
  }
  ValueId y = op.make().node("Mul", {op.in(0), op.make().constant(scale->reshaped(whole))});
  if (op.has(2)) {
    const std::optional<Tensor> shift = op.copy(2);
    if (!shift || shift->size() != scale->size()) {
      fail(ErrorKind::Unsupported, "its shift is computed or does not fit its scale");
    }
    y = op.make().node("Add", {y, op.make().constant(shift->reshaped(whole))});
  }
  op.set(op.activated(y));
}

void read_l2(Op& op) {
  const Ints axes = op.need_ints("axis");
  const double epsilon = op.real("epsilon", 1e-4);
  GraphMaker& make = op.make();
  const ValueId x = op.in(0);
  const ValueId sum = make.reduce("ReduceSumSquare", x, axes, true);
  const ValueId divisor = make.node("Sqrt", {make.node("Max", {sum, make.scalar(epsilon)})});
  op.set(make.node("Div", {x, divisor}));
}

/// ONNX divides alpha by the number of channels that it sums over; MindSpore does not.
void read_lrn(Op& op) {
  const std::int64_t radius = op.number("depth_radius", 5);
  constexpr std::int64_t kMost = 1 << 16;
  if (radius < 0 || radius > kMost) fail(ErrorKind::BadModel, "its depth_radius is {}", radius);
  const std::int64_t size = 2 * radius + 1;
  op.set(op.make().node(
      "LRN", {op.in(0)},
      {{"size", size},
       {"bias", static_cast<float>(op.real("bias", 1))},
       {"alpha", static_cast<float>(op.real("alpha", 1) * static_cast<double>(size))},
       {"beta", static_cast<float>(op.real("beta", 0.5))}}));
}

constexpr auto kRows = std::to_array<OpRow>({
    {"BatchNorm", read_batch_norm_or_lite},
    {"FusedBatchNorm", read_batch_norm},
    {"LayerNorm", read_layer_norm},
    {"LayerNormFusion", read_layer_norm},
    {"GroupNorm", read_group_norm},
    {"ScaleFusion", read_scale},
    {"L2Normalize", read_l2},
    {"L2NormalizeFusion", read_l2},
    {"LRN", read_lrn},
});

}  // namespace

std::span<const OpRow> norm_rows() { return kRows; }

}  // namespace quench::mindir
