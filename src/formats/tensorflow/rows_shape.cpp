// SPDX-License-Identifier: Apache-2.0
// TensorFlow's operators that give tensors, hand them on, or change and tell their shapes.
#include <algorithm>
#include <array>
#include <numeric>

#include "base/format.h"
#include "formats/tensorflow/rows.h"
#include "formats/tensorflow/step.h"

namespace quench::tensorflow {
namespace {

void lower_placeholder(Step& step) {
  const wire::AttrValue* given = step.attribute("shape");
  if (given == nullptr || !given->has_shape() || given->shape().unknown_rank()) {
    fail(ErrorKind::Unsupported,
         "the shape of this input is not known; freeze the graph with a known input shape");
  }
  Shape shape;
  for (const wire::Dim& dim : given->shape().dim()) {
    shape.push_back(std::max<std::int64_t>(dim.size(), -1));
  }
  const int tensor =
      step.add_tensor(step.result_name(), shape, step.type("dtype", DType::Undefined));
  step.state().program.inputs.push_back(tensor);
  step.set(tensor);
}

void lower_const(Step& step) {
  const wire::AttrValue* given = step.attribute("value");
  if (given == nullptr || !given->has_tensor()) fail(ErrorKind::BadModel, "it has no value");
  // Texts, of assertions for example, are constants that no layer reads.
  if (dtype_of(given->tensor().dtype()) == DType::String) return;
  step.set(step.add_constant(step.result_name(), tensor_of(given->tensor())));
}

void lower_nothing(Step& /*step*/) {}
void lower_identity(Step& step) { step.set(step.in()); }

void lower_identities(Step& step) {
  for (std::size_t i = 0; i < step.num_inputs(); ++i) step.set(step.in(i), i);
}

/// The product of what is known; -1 where something is not.
std::int64_t count_of(const Shape& shape) {
  return std::ranges::count(shape, -1) > 0 ? -1 : num_elements(shape).value_or(-1);
}

/// What -1 stands for in a wanted shape, where the input tells; open sizes become -1.
Shape resolved(const Shape& from, Ints wanted) {
  const bool batch = !from.empty() && !wanted.empty() && from[0] == -1 && wanted[0] == kOpen;
  const auto infer = std::ranges::find(wanted, -1);
  Shape rest = from;
  if (batch) rest[0] = 1;
  const std::int64_t total = count_of(rest);
  if (infer != wanted.end() && total >= 0) {
    Shape others;
    for (auto at = wanted.begin(); at != wanted.end(); ++at) {
      if (at != infer && !(batch && at == wanted.begin())) others.push_back(*at);
    }
    const std::int64_t known =
        std::ranges::count(others, kOpen) > 0 ? -1 : num_elements(others).value_or(-1);
    if (known > 0 && total % known == 0) *infer = total / known;
  }
  std::ranges::replace(wanted, kOpen, -1);
  if (std::ranges::count(wanted, -1) > 1) {
    fail(ErrorKind::Unsupported,
         "its result has several open sizes; freeze the graph with a known input shape");
  }
  return wanted;
}

/// A constant is reshaped at once.
bool set_constant(Step& step, const Shape& shape) {
  const Tensor* data = step.constant(0);
  if (data == nullptr || step.item(step.in()).quantized()) return false;
  if (num_elements(shape).value_or(-1) != data->size()) return false;
  step.set(step.add_constant(step.result_name(), Tensor(*data).reshaped(shape)));
  return true;
}

void lower_reshape(Step& step) {
  const auto wanted = step.sizes(1);
  if (!wanted) {
    fail(ErrorKind::Unsupported,
         "its shape is computed while the graph runs; freeze the graph with a known input shape");
  }
  if (const auto numbers = step.dtype() == DType::Int32 ? step.sizes(0) : std::nullopt) {
    const Shape shape = resolved({std::ssize(*numbers)}, *wanted);
    if (num_elements(shape).value_or(-1) == std::ssize(*numbers)) {
      return step.set_sizes(*numbers, shape);
    }
  }
  const Shape shape = resolved(step.shape(), *wanted);
  if (set_constant(step, shape)) return;
  step.set(step.make("RESHAPE", {step.in()}, shape, step.dtype(), {{"shape", Ints(shape)}}));
}

void lower_squeeze(Step& step) {
  const Shape from = step.shape();
  Ints dims;
  for (const std::int64_t each : step.numbers("squeeze_dims")) {
    dims.push_back(step.axis(each, step.rank()));
  }
  Shape shape;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const bool named = std::ranges::count(dims, static_cast<std::int64_t>(i)) > 0;
    if (named || (dims.empty() && from[i] == 1)) continue;
    shape.push_back(from[i]);
  }
  if (const auto numbers = step.state().sizes.find(step.in());
      numbers != step.state().sizes.end()) {
    return step.set_sizes(Ints(numbers->second), shape);
  }
  if (set_constant(step, shape)) return;
  step.set(step.make("SQUEEZE", {step.in()}, shape, step.dtype(), {{"dims", dims}}));
}

void lower_expand(Step& step) {
  const std::int64_t axis = step.axis(step.need_int(1), step.rank() + 1);
  Shape shape = step.shape();
  shape.insert(shape.begin() + axis, 1);
  const bool whole = step.dtype() == DType::Int32 || step.dtype() == DType::Int64;
  if (whole && step.rank() == 0) {
    if (const auto numbers = step.sizes(0)) return step.set_sizes(*numbers, shape);
  }
  if (set_constant(step, shape)) return;
  step.set(step.make("EXPAND_DIMS", {step.in(0), step.in(1)}, shape, step.dtype()));
}

void lower_transpose(Step& step) {
  const Ints perm = step.need_ints(1);
  const Shape from = step.shape();
  Ints sorted = perm, all(from.size());
  std::ranges::sort(sorted);
  std::iota(all.begin(), all.end(), 0);
  if (sorted != all) {
    fail(ErrorKind::BadModel, "it does not name each of {} dimensions once", from.size());
  }
  Shape shape;
  for (const std::int64_t axis : perm) shape.push_back(from[static_cast<std::size_t>(axis)]);
  step.set(step.make("TRANSPOSE", {step.in(0), step.in(1)}, shape, step.dtype()));
}

void lower_shape(Step& step) {
  Ints sizes = step.shape();
  std::ranges::replace(sizes, -1, kOpen);
  step.set_sizes(sizes, {std::ssize(sizes)});
}

void lower_fill(Step& step) {
  const Ints shape = step.need_ints(0);
  expect_sound(shape);
  const Tensor value = step.need_constant(1);
  const auto count = num_elements(shape);
  constexpr std::int64_t kMost = 1 << 24;
  if (value.size() != 1 || !count || *count > kMost) {
    fail(ErrorKind::Unsupported, "it fills {} with {} numbers", to_string(shape), value.size());
  }
  Tensor result = Tensor::zeros(DType::Float32, shape);
  std::ranges::fill(result.mutable_data<float>(), to_float(value)[0]);
  step.set(step.add_constant(step.result_name(), convert(result, value.dtype())));
}

void lower_pad(Step& step) {
  const Ints pairs = step.need_ints(1);
  Shape shape = step.shape();
  if (pairs.size() != 2 * shape.size()) {
    fail(ErrorKind::BadModel, "it has {} paddings for {} dimensions", pairs.size(), shape.size());
  }
  constexpr std::int64_t kMost = 1 << 20;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (pairs[i] < 0 || pairs[i] > kMost) fail(ErrorKind::BadModel, "it pads by {}", pairs[i]);
    if (shape[i / 2] >= 0) shape[i / 2] += pairs[i];
  }
  std::vector<int> inputs{step.in(0), step.in(1)};
  if (step.as() == "PADV2") inputs.push_back(step.in(2));
  Options options;
  if (step.as() == "MIRROR_PAD") {
    options.push_back({"mode", std::int64_t{step.text("mode", "REFLECT") == "SYMMETRIC"}});
  }
  step.set(step.make(step.as(), inputs, shape, step.dtype(), options));
}

void lower_tile(Step& step) {
  const Ints times = step.need_ints(1);
  Shape shape = step.shape();
  if (times.size() != shape.size()) fail(ErrorKind::BadModel, "it repeats other dimensions");
  for (std::size_t i = 0; i < times.size(); ++i) {
    constexpr std::int64_t kMost = 1 << 20;
    if (times[i] < 0 || times[i] > kMost)
      fail(ErrorKind::BadModel, "it repeats {} times", times[i]);
    if (shape[i] >= 0) shape[i] *= times[i];
  }
  step.set(step.make("TILE", {step.in(0), step.in(1)}, shape, step.dtype()));
}

void lower_resize(Step& step) {
  const Ints size = step.need_ints(1);
  if (size.size() != 2 || step.rank() != 4) fail(ErrorKind::BadModel, "it resizes no image");
  const Shape shape{step.shape()[0], size[0], size[1], step.shape()[3]};
  step.set(step.make(step.as(), {step.in(0), step.in(1)}, shape, step.dtype(),
                     {{"align_corners", std::int64_t{step.flag("align_corners", false)}},
                      {"half_pixel", std::int64_t{step.flag("half_pixel_centers", false)}}}));
}

void lower_blocks(Step& step) {
  const std::int64_t block = step.number("block_size", 0);
  constexpr std::int64_t kMost = 1 << 10;
  const bool sound =
      block > 0 && block < kMost && step.rank() == 4 && step.text("data_format", "NHWC") == "NHWC";
  if (!sound) fail(ErrorKind::Unsupported, "its block size is {}, or channels are first", block);
  Shape shape = step.shape();
  const bool apart = step.as() == "DEPTH_TO_SPACE";
  for (std::size_t i = 1; i < 3; ++i) {
    if (shape[i] >= 0) shape[i] = apart ? shape[i] * block : shape[i] / block;
  }
  if (shape[3] >= 0) shape[3] = apart ? shape[3] / (block * block) : shape[3] * block * block;
  step.set(step.make(step.as(), {step.in()}, shape, step.dtype(), {{"block", block}}));
}

/// Pixels spread over the batch, and back: what stands around dilated convolutions.
void lower_batches(Step& step) {
  const Ints block = step.need_ints(1);
  const Ints pairs = step.need_ints(2);
  constexpr std::int64_t kMost = 1 << 16;
  bool sound = step.rank() == 4 && block.size() == 2 && pairs.size() == 4;
  for (const std::int64_t each : block) sound = sound && each > 0 && each < kMost;
  for (const std::int64_t each : pairs) sound = sound && each >= 0 && each < kMost;
  if (!sound) fail(ErrorKind::Unsupported, "its blocks or paddings are not read");
  Shape shape = step.shape();
  const bool back = step.as() == "BATCH_TO_SPACE_ND";
  const std::int64_t all = block[0] * block[1];
  if (shape[0] >= 0) shape[0] = back ? shape[0] / all : shape[0] * all;
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t more = pairs[2 * i] + pairs[2 * i + 1];
    std::int64_t& size = shape[i + 1];
    if (size >= 0) size = back ? size * block[i] - more : (size + more) / block[i];
  }
  step.set(step.make(step.as(), {step.in(0), step.in(1), step.in(2)}, shape, step.dtype()));
}

constexpr auto kRows = std::to_array<OpRow>({
    {"Placeholder", lower_placeholder},
    {"PlaceholderWithDefault", lower_identity},
    {"Const", lower_const},
    {"NoOp", lower_nothing},
    {"Assert", lower_nothing},
    {"Identity", lower_identity},
    {"IdentityN", lower_identities},
    {"StopGradient", lower_identity},
    {"PreventGradient", lower_identity},
    {"CheckNumerics", lower_identity},
    {"Snapshot", lower_identity},
    {"Reshape", lower_reshape},
    {"Squeeze", lower_squeeze},
    {"ExpandDims", lower_expand},
    {"Transpose", lower_transpose},
    {"Shape", lower_shape},
    {"Fill", lower_fill},
    {"Pad", lower_pad, "PAD"},
    {"PadV2", lower_pad, "PADV2"},
    {"MirrorPad", lower_pad, "MIRROR_PAD"},
    {"Tile", lower_tile},
    {"ResizeBilinear", lower_resize, "RESIZE_BILINEAR"},
    {"ResizeNearestNeighbor", lower_resize, "RESIZE_NEAREST_NEIGHBOR"},
    {"DepthToSpace", lower_blocks, "DEPTH_TO_SPACE"},
    {"SpaceToDepth", lower_blocks, "SPACE_TO_DEPTH"},
    {"SpaceToBatchND", lower_batches, "SPACE_TO_BATCH_ND"},
    {"BatchToSpaceND", lower_batches, "BATCH_TO_SPACE_ND"},
});

}  // namespace

std::span<const OpRow> shape_rows() { return kRows; }

}  // namespace quench::tensorflow
