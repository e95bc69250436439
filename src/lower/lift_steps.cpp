// SPDX-License-Identifier: Apache-2.0
// How operators changed between versions, one function a change.
#include <algorithm>
#include <array>

#include "lower/lift.h"

namespace quench::lower {
namespace {

void set_missing(Node& node, std::string_view attribute, Attribute::Data data) {
  if (node.find(attribute) == nullptr) node.set(attribute, std::move(data));
}

void batchnorm_9(Lifter& lifter, Node& node) {
  if (node.get_int("spatial", 1) == 0) lifter.refuse(node, "it normalises each pixel (spatial 0)");
  node.erase("spatial");
}

void batchnorm_14(Lifter& lifter, Node& node) {
  if (node.outputs.size() == 1) return;
  // Further outputs meant training. The batch's own statistics are no outputs any more.
  for (std::size_t i = 3; i < node.outputs.size(); ++i) {
    if (lifter.is_used(node.outputs[i])) lifter.refuse(node, "its statistics are used (training)");
  }
  node.outputs.resize(3, kNoValue);
  node.set("training_mode", std::int64_t{1});
}

void upsample_9(Lifter& lifter, Node& node) {
  const auto* scales = node.get<std::vector<float>>("scales");
  if (scales == nullptr) lifter.refuse(node, "it has no scales");
  const Shape shape = {static_cast<std::int64_t>(scales->size())};
  Tensor tensor = Tensor::of<float>(shape, *scales);
  node.erase("scales");
  lifter.set_input(node, 1, std::move(tensor), "scales");
}

void upsample_10(Lifter& /*lifter*/, Node& node) { node.op_type = "Resize"; }

/// The scales that make the image smaller, or those that make it larger; 1 for the other axes.
std::vector<float> scales_of(std::span<const float> scales, bool shrinking) {
  std::vector<float> result(scales.begin(), scales.end());
  for (float& scale : result) {
    if ((scale < 1) != shrinking) scale = 1;
  }
  return result;
}

void set_resize_mode(Node& node, bool upper) {
  node.set("coordinate_transformation_mode", std::string("asymmetric"));
  node.set("nearest_mode", std::string(upper ? "ceil" : "floor"));
}

/// What is not meant can be left out now. An empty tensor in its place is taken as given where it
/// is a graph input with a default, as exporters wrote it.
void resize_13(Lifter& lifter, Node& node) {
  for (ValueId& input : node.inputs) {
    const Tensor* constant = lifter.graph().constant(input);
    if (constant != nullptr && constant->size() == 0) input = kNoValue;
  }
}

/// It used to map pixels by their corners and to take the lower neighbour, or the upper one along
/// axes that shrink; the latter is what runtimes do, the standard is silent. Now one mode holds for
/// all axes, so an image that shrinks along some and grows along others takes two steps.
void resize_11(Lifter& lifter, Node& node) {
  const Tensor* constant = lifter.graph().constant(node.input(1));
  if (node.inputs.size() == 2) node.inputs.insert(node.inputs.begin() + 1, kNoValue);
  set_resize_mode(node, false);
  if (constant == nullptr || constant->dtype() != DType::Float32) return;
  const auto scales = constant->data<float>();
  const auto shrinking = scales_of(scales, true);
  const auto growing = scales_of(scales, false);
  const auto changes = [](float scale) { return scale != 1; };
  if (std::ranges::none_of(shrinking, changes)) return;
  if (std::ranges::none_of(growing, changes)) {
    set_resize_mode(node, true);
    return;
  }
  if (node.get_string("mode", "nearest") != "nearest") return;
  const Shape shape = {static_cast<std::int64_t>(scales.size())};
  const std::string stem = lifter.graph()[node.outputs[0]].name;
  Node first = node;
  first.name.clear();
  set_resize_mode(first, true);
  lifter.set_input(first, 2, Tensor::of<float>(shape, shrinking), "shrinking_scales");
  node.inputs[0] = lifter.before(std::move(first), stem + "_shrunk");
  lifter.set_input(node, 2, Tensor::of<float>(shape, growing), "growing_scales");
}

void slice_10(Lifter& lifter, Node& node) {
  lifter.ints_to_input(node, "starts", 1);
  lifter.ints_to_input(node, "ends", 2);
  lifter.ints_to_input(node, "axes", 3);
}

void topk_10(Lifter& lifter, Node& node) {
  const std::int64_t k = node.get_int("k", 1);
  node.erase("k");
  lifter.set_input(node, 1, Tensor::of<std::int64_t>({1}, {k}), "k");
}

void clip_11(Lifter& lifter, Node& node) {
  const DType dtype = lifter.dtype(node.input(0));
  std::size_t index = 1;
  for (const std::string_view bound : {"min", "max"}) {
    if (const auto* number = node.get<float>(bound)) {
      const float value = *number;
      node.erase(bound);
      lifter.set_input(node, index, convert(Tensor::scalar<float>(value), dtype), bound);
    }
    ++index;
  }
}

void pad_11(Lifter& lifter, Node& node) {
  const float value = node.get_float("value", 0);
  const DType dtype = lifter.dtype(node.input(0));
  lifter.ints_to_input(node, "pads", 1);
  node.erase("value");
  if (value != 0) {
    lifter.set_input(node, 2, convert(Tensor::scalar<float>(value), dtype), "value");
  }
}

void scatter_11(Lifter& /*lifter*/, Node& node) { node.op_type = "ScatterElements"; }

/// Outside training the ratio means nothing.
void dropout_12(Lifter& /*lifter*/, Node& node) {
  node.erase("ratio");
  node.erase("seed");
}

void axes_to_input(Lifter& lifter, Node& node) { lifter.ints_to_input(node, "axes", 1); }

void split_13(Lifter& lifter, Node& node) { lifter.ints_to_input(node, "split", 1); }

void split_18(Lifter& /*lifter*/, Node& node) {
  if (node.input(1) != kNoValue) return;
  node.set("num_outputs", static_cast<std::int64_t>(node.outputs.size()));
}

/// It used to work on all axes from `axis` on, taken together.
void softmax_13(Lifter& lifter, Node& node) {
  const ValueId input = node.input(0);
  const std::int64_t rank = lifter.rank(input);
  std::int64_t axis = node.get_int("axis", 1);
  if (axis < 0 && rank >= 0) axis += rank;
  node.set("axis", std::int64_t{-1});
  if (axis == -1 || (rank >= 0 && axis == rank - 1)) return;
  const std::string stem = lifter.graph()[node.outputs[0]].name;
  Node shape;
  shape.op_type = "Shape";
  shape.inputs = {input};
  const ValueId full = lifter.before(std::move(shape), stem + "_shape");
  Node flatten;
  flatten.op_type = "Flatten";
  flatten.inputs = {input};
  flatten.set("axis", axis);
  node.inputs[0] = lifter.before(std::move(flatten), stem + "_flat_input");
  Node reshape;
  reshape.op_type = "Reshape";
  reshape.outputs = {node.outputs[0]};
  node.outputs[0] = lifter.graph().add_fresh(stem + "_flat");
  reshape.inputs = {node.outputs[0], full};
  lifter.after(std::move(reshape));
}

void roi_align_16(Lifter& /*lifter*/, Node& node) {
  set_missing(node, "coordinate_transformation_mode", std::string("output_half_pixel"));
}

void grid_sample_20(Lifter& /*lifter*/, Node& node) {
  const std::string mode = node.get_string("mode", "bilinear");
  if (mode == "bilinear") node.set("mode", std::string("linear"));
  if (mode == "bicubic") node.set("mode", std::string("cubic"));
}

void dft_20(Lifter& lifter, Node& node) {
  const std::int64_t axis = node.get_int("axis", 1);
  node.erase("axis");
  lifter.set_input(node, 2, Tensor::scalar<std::int64_t>(axis), "axis");
}

void refuse_old_scan(Lifter& lifter, Node& node) {
  lifter.refuse(node, "its inputs were in another order; export the model again");
}

void refuse_group_norm(Lifter& lifter, Node& node) {
  lifter.refuse(node, "its scale was one number a group; export the model again");
}

constexpr auto kSteps = std::to_array<LiftStep>({
    {"BatchNormalization", 9, batchnorm_9},
    {"Upsample", 9, upsample_9},
    {"Scan", 9, refuse_old_scan},
    {"Upsample", 10, upsample_10},
    {"Slice", 10, slice_10},
    {"TopK", 10, topk_10},
    {"Resize", 11, resize_11},
    {"Clip", 11, clip_11},
    {"Pad", 11, pad_11},
    {"Scatter", 11, scatter_11},
    {"Dropout", 12, dropout_12},
    {"Resize", 13, resize_13},
    {"Squeeze", 13, axes_to_input},
    {"Unsqueeze", 13, axes_to_input},
    {"ReduceSum", 13, axes_to_input},
    {"Split", 13, split_13},
    {"Softmax", 13, softmax_13},
    {"LogSoftmax", 13, softmax_13},
    {"Hardmax", 13, softmax_13},
    {"BatchNormalization", 14, batchnorm_14},
    {"RoiAlign", 16, roi_align_16},
    {"ReduceL1", 18, axes_to_input},
    {"ReduceL2", 18, axes_to_input},
    {"ReduceLogSum", 18, axes_to_input},
    {"ReduceLogSumExp", 18, axes_to_input},
    {"ReduceMax", 18, axes_to_input},
    {"ReduceMean", 18, axes_to_input},
    {"ReduceMin", 18, axes_to_input},
    {"ReduceProd", 18, axes_to_input},
    {"ReduceSumSquare", 18, axes_to_input},
    {"Split", 18, split_18},
    {"GridSample", 20, grid_sample_20},
    {"DFT", 20, dft_20},
    {"GroupNormalization", 21, refuse_group_norm},
});

}  // namespace

std::span<const LiftStep> lift_steps() { return kSteps; }

}  // namespace quench::lower
