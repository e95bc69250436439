// SPDX-License-Identifier: Apache-2.0
// TFLite's operators on images: resizing and rearranging.
#include <array>

#include "base/format.h"
#include "formats/tflite/rows.h"
#include "formats/tflite/window.h"

namespace quench::tflite {
namespace {

NodeAttributes resize_attributes(const Op& op, bool nearest) {
  const bool corners = op.number("align_corners") != 0;
  const bool half = op.number("half_pixel") != 0;
  std::string transform = half ? "half_pixel" : "asymmetric";
  if (corners) transform = "align_corners";
  NodeAttributes attributes{{"mode", std::string(nearest ? "nearest" : "linear")},
                            {"coordinate_transformation_mode", transform}};
  if (nearest) {
    // floor((x + 0.5) * s) is the nearest of (x + 0.5) * s - 0.5, halves up.
    attributes.emplace_back("nearest_mode",
                            std::string(corners || half ? "round_prefer_ceil" : "floor"));
  }
  return attributes;
}

void resize(Op& op, bool nearest) {
  expect_image(op);
  const Ints size = op.need_ints(1);
  if (size.size() != 2 || size[0] <= 0 || size[1] <= 0) {
    fail(ErrorKind::BadModel, "it does not say one height and one width");
  }
  const Form form = nearest ? op.form() : Form::Floats;
  const ValueId x = op.in(0, Layout::First, form);
  const Shape& in = op.in_item(0).shape;
  std::vector<ValueId> inputs{x, kNoValue, kNoValue, kNoValue};
  const bool whole = in[1] > 0 && in[2] > 0 && size[0] % in[1] == 0 && size[1] % in[2] == 0;
  if (whole) {
    inputs[2] = op.make().floats(
        {1, 1, static_cast<float>(size[0] / in[1]), static_cast<float>(size[1] / in[2])});
  } else if (in[0] > 0 && in[3] > 0) {
    inputs[3] = op.make().ints({in[0], in[3], size[0], size[1]});
  } else {
    const ValueId outer =
        op.make().node("Slice", {op.make().node("Shape", {x}), op.make().ints({0}),
                                 op.make().ints({2}), op.make().ints({0})});
    inputs[3] =
        op.make().node("Concat", {outer, op.make().ints(size)}, {{"axis", std::int64_t{0}}});
  }
  op.set(op.make().node("Resize", inputs, resize_attributes(op, nearest)), Layout::First, form);
}

void read_bilinear(Op& op) { resize(op, false); }
void read_nearest(Op& op) { resize(op, true); }

template <const char* kOpType>
void read_blocks(Op& op) {
  expect_image(op);
  const Form form = op.form();
  const ValueId x = op.in(0, Layout::First, form);
  op.set(op.make().node(kOpType, {x}, {{"blocksize", op.number("block")}}), Layout::First, form);
}

constexpr char kDepthToSpace[] = "DepthToSpace";
constexpr char kSpaceToDepth[] = "SpaceToDepth";

struct Blocks {
  Ints block, pairs;
};

Blocks blocks_of(Op& op) {
  expect_image(op);
  Blocks result{.block = op.need_ints(1), .pairs = op.need_ints(2)};
  constexpr std::int64_t kMost = 1 << 16;
  bool sound = result.block.size() == 2 && result.pairs.size() == 4;
  for (const std::int64_t each : result.block) sound = sound && each > 0 && each < kMost;
  for (const std::int64_t each : result.pairs) sound = sound && each >= 0 && each < kMost;
  if (!sound) fail(ErrorKind::BadModel, "its blocks or paddings make no sense");
  return result;
}

void read_space_to_batch(Op& op) {
  if (op.hand_on()) return;
  const Blocks given = blocks_of(op);
  const Shape& in = op.in_item(0).shape;
  if (in[1] < 0 || in[2] < 0 || in[3] < 0) fail(ErrorKind::Unsupported, "its sizes are open");
  const std::int64_t h = in[1] + given.pairs[0] + given.pairs[1];
  const std::int64_t w = in[2] + given.pairs[2] + given.pairs[3];
  const std::int64_t bh = given.block[0], bw = given.block[1];
  GraphMaker& make = op.make();
  ValueId x = op.in(0, Layout::First);
  x = make.node(
      "Pad",
      {x, make.ints({0, 0, given.pairs[0], given.pairs[2], 0, 0, given.pairs[1], given.pairs[3]}),
       make.scalar(0)});
  x = make.reshape(x, {-1, in[3], h / bh, bh, w / bw, bw});
  x = make.transpose(x, {3, 5, 0, 1, 2, 4});
  op.set(make.reshape(x, {-1, in[3], h / bh, w / bw}), Layout::First);
}

void read_batch_to_space(Op& op) {
  if (op.hand_on()) return;
  const Blocks given = blocks_of(op);
  const Shape& in = op.in_item(0).shape;
  if (in[1] < 0 || in[2] < 0 || in[3] < 0) fail(ErrorKind::Unsupported, "its sizes are open");
  const std::int64_t bh = given.block[0], bw = given.block[1];
  GraphMaker& make = op.make();
  ValueId x = make.reshape(op.in(0, Layout::First), {bh, bw, -1, in[3], in[1], in[2]});
  x = make.transpose(x, {2, 3, 4, 0, 5, 1});
  x = make.reshape(x, {-1, in[3], in[1] * bh, in[2] * bw});
  x = make.node("Slice", {x, make.ints({given.pairs[0], given.pairs[2]}),
                          make.ints({in[1] * bh - given.pairs[1], in[2] * bw - given.pairs[3]}),
                          make.ints({2, 3})});
  op.set(x, Layout::First);
}

constexpr std::string_view kResize = "align_corners:t half_pixel:t";

constexpr auto kRows = std::to_array<OpRow>({
    // Two fields of old, new height and width, come first in one of the two tables.
    {"RESIZE_BILINEAR", 15, "height:i width:i align_corners:t half_pixel:t", read_bilinear},
    {"RESIZE_NEAREST_NEIGHBOR", 74, kResize, read_nearest},
    {"DEPTH_TO_SPACE", 94, "block:i", read_blocks<kDepthToSpace>},
    {"SPACE_TO_DEPTH", 19, "block:i", read_blocks<kSpaceToDepth>},
    {"SPACE_TO_BATCH_ND", 0, "", read_space_to_batch},
    {"BATCH_TO_SPACE_ND", 0, "", read_batch_to_space},
});

}  // namespace

std::span<const OpRow> image_rows() { return kRows; }

}  // namespace quench::tflite
