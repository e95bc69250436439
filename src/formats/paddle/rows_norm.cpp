// SPDX-License-Identifier: Apache-2.0
// Paddle's normalisations, as they run in inference.
#include <array>
#include <cmath>

#include "base/format.h"
#include "formats/paddle/layout.h"
#include "formats/paddle/op.h"

namespace quench::paddle {
namespace {

/// As many ones, or zeros, as X has channels.
ValueId channels_of(Op& op, const Layout& layout, double value) {
  const Shape shape = layout.channels_first(op.shape("X").value_or(Shape()));
  constexpr std::int64_t kMostChannels = 1 << 20;
  if (shape.size() < 2 || shape[1] < 0 || shape[1] > kMostChannels) {
    fail(ErrorKind::Unsupported,
         "it has no scale or bias, and the program does not say how many "
         "channels there are");
  }
  const std::vector<float> values(static_cast<std::size_t>(shape[1]), static_cast<float>(value));
  return op.constant(Tensor::of<float>({shape[1]}, std::span<const float>(values)));
}

Attributes epsilon(Op& op) { return {{"epsilon", static_cast<float>(op.real("epsilon"))}}; }

void read_batch_norm(Op& op) {
  const Layout layout(op, "X", op.text("data_layout"));
  const ValueId scale = op.has("Scale") ? op.in("Scale") : channels_of(op, layout, 1);
  const ValueId bias = op.has("Bias") ? op.in("Bias") : channels_of(op, layout, 0);
  layout.set(op, "Y",
             op.node("BatchNormalization",
                     {layout.first(op, op.in("X")), scale, bias, op.in("Mean"), op.in("Variance")},
                     epsilon(op)));
}

void read_instance_norm(Op& op) {
  const Layout layout(op, "X", "NCHW");
  const ValueId scale = op.has("Scale") ? op.in("Scale") : channels_of(op, layout, 1);
  const ValueId bias = op.has("Bias") ? op.in("Bias") : channels_of(op, layout, 0);
  op.set("Y", op.node("InstanceNormalization", {op.in("X"), scale, bias}, epsilon(op)));
}

/// Scale and bias are flat in Paddle; ONNX wants the shape of what is normalised.
ValueId unflattened(Op& op, std::string_view input, std::int64_t axis) {
  if (axis == op.need_rank("X") - 1) return op.in(input);
  return op.node("Reshape", {op.in(input), op.slice(op.sizes(op.in("X")), 0, axis, kEnd)});
}

void read_layer_norm(Op& op) {
  const std::int64_t axis = op.integer("begin_norm_axis");
  std::vector<ValueId> inputs{op.in("X")};
  if (op.has("Scale")) {
    inputs.push_back(unflattened(op, "Scale", axis));
  } else {
    inputs.push_back(op.node("ConstantOfShape", {op.slice(op.sizes(op.in("X")), 0, axis, kEnd)},
                             {{"value", Tensor::of<float>({1}, {1.0F})}}));
  }
  if (op.has("Bias")) inputs.push_back(unflattened(op, "Bias", axis));
  Attributes attributes = epsilon(op);
  attributes.emplace_back("axis", axis);
  op.set("Y", op.node("LayerNormalization", inputs, attributes));
}

/// Each group is an instance of its own; scale and bias are of channels.
void read_group_norm(Op& op) {
  const Layout layout(op, "X", op.text("data_layout"));
  const std::int64_t groups = op.integer("groups");
  constexpr std::int64_t kMostGroups = 1 << 20;
  if (groups <= 0 || groups > kMostGroups || op.need_rank("X") < 2) {
    fail(ErrorKind::BadModel, "it makes {} groups of what has no channels", groups);
  }
  const ValueId x = layout.first(op, op.in("X"));
  const std::vector<float> ones(static_cast<std::size_t>(groups), 1.0F);
  const std::vector<float> zeros(static_cast<std::size_t>(groups), 0.0F);
  const ValueId normed =
      op.node("InstanceNormalization",
              {op.reshape(x, {0, groups, -1}),
               op.constant(Tensor::of<float>({groups}, std::span<const float>(ones))),
               op.constant(Tensor::of<float>({groups}, std::span<const float>(zeros)))},
              epsilon(op));
  ValueId y = op.node("Reshape", {normed, op.sizes(x)});
  std::vector<std::int64_t> by_channel(static_cast<std::size_t>(op.need_rank("X")) - 1, 1);
  by_channel.front() = -1;
  if (op.has("Scale")) y = op.node("Mul", {y, op.reshape(op.in("Scale"), by_channel)});
  if (op.has("Bias")) y = op.node("Add", {y, op.reshape(op.in("Bias"), by_channel)});
  layout.set(op, "Y", y);
}

/// Of order 0 it is how many are not zero, of an infinite one the greatest or least.
ValueId p_norm(Op& op, double order, const std::vector<std::int64_t>& axes, bool keep) {
  const ValueId x = op.in("X");
  if (order == 1) return op.reduce("ReduceL1", x, axes, keep);
  if (order == 2) return op.reduce("ReduceL2", x, axes, keep);
  const DType dtype = op.dtype("X");
  if (order == 0) {
    const ValueId zero = op.node("Equal", {x, op.scalar(0, dtype)});
    return op.reduce("ReduceSum", op.cast(op.node("Not", {zero}), dtype), axes, keep);
  }
  const ValueId size = op.node("Abs", {x});
  if (std::isinf(order)) {
    return op.reduce(order > 0 ? "ReduceMax" : "ReduceMin", size, axes, keep);
  }
  const ValueId powers = op.node("Pow", {size, op.scalar(order, dtype)});
  const ValueId sum = op.reduce("ReduceSum", powers, axes, keep);
  return op.node("Pow", {sum, op.scalar(1 / order, dtype)});
}

void read_p_norm(Op& op) {
  std::vector<std::int64_t> axes{op.integer("axis")};
  if (op.flag("asvector")) axes.clear();
  op.set("Out", p_norm(op, op.real("porder"), axes, op.flag("keepdim")));
}

/// The second norm of all that lies in some dimensions.
void read_frobenius_norm(Op& op) {
  std::vector<std::int64_t> axes = op.integers("dim");
  if (op.flag("reduce_all")) axes.clear();
  const bool keep = op.flag("keep_dim");
  const ValueId norm = op.reduce("ReduceL2", op.in("X"), axes, keep);
  // Older programs give a result of no dimensions as one of one element.
  const bool one = axes.empty() && !keep && op.rank("Out") == 1;
  op.set("Out", one ? op.reshape(norm, {1}) : norm);
}

/// x / sqrt(sum(x * x) + epsilon).
void read_norm(Op& op) {
  const ValueId x = op.in("X");
  const ValueId sum = op.reduce("ReduceSumSquare", x, {op.integer("axis")}, true);
  const ValueId length =
      op.node("Sqrt", {op.node("Add", {sum, op.scalar(op.real("epsilon"), op.dtype("X"))})});
  op.set("Norm", length);
  op.set("Out", op.node("Div", {x, length}));
}

constexpr auto kRows = std::to_array<OpRow>({
    {"batch_norm", "batch_norm sync_batch_norm", "X Mean Variance Scale Bias",
     "Y MeanOut VarianceOut SavedMean SavedVariance ReserveSpace",
     "epsilon=1e-5 data_layout|data_format=NCHW", read_batch_norm},
    {"sync_batch_norm", "-", "X Mean Variance Scale Bias",
     "Y MeanOut VarianceOut SavedMean SavedVariance ReserveSpace", "epsilon=1e-5 data_layout=NCHW",
     read_batch_norm},
    {"instance_norm", "", "X Scale Bias", "Y SavedMean SavedVariance", "epsilon=1e-5",
     read_instance_norm},
    {"layer_norm", "", "X Scale Bias", "Y Mean Variance", "epsilon=1e-5 begin_norm_axis=1",
     read_layer_norm, 17},
    {"group_norm", "", "X Scale Bias", "Y Mean Variance",
     "epsilon=1e-5 groups data_layout|data_format=NCHW", read_group_norm},
    {"p_norm", "", "X", "Out", "porder=2 axis=-1 keepdim=false asvector=false", read_p_norm},
    {"frobenius_norm", "", "X", "Out", "dim|axis=0 keep_dim|keepdim=false reduce_all=false",
     read_frobenius_norm},
    {"norm", "", "X", "Out Norm", "axis epsilon=1e-10", read_norm},
});

}  // namespace

std::span<const OpRow> norm_rows() { return kRows; }

}  // namespace quench::paddle
