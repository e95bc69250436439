// SPDX-License-Identifier: Apache-2.0
// MindIR's operators on images: resizing, padding, rearranging.
#include <algorithm>
#include <array>

#include "base/format.h"
#include "formats/mindir/op.h"
#include "formats/mindir/rows.h"

namespace quench::mindir {
namespace {

struct Resizing {
  bool nearest = false;
  std::string transform = "asymmetric";
  std::string rounding = "floor";
};

void resize(Op& op, const Resizing& how, const Ints& size) {
  if (size.size() != 2 || size[0] <= 0 || size[1] <= 0) {
    fail(ErrorKind::BadModel, "it does not say one height and one width");
  }
  GraphMaker& make = op.make();
  const ValueId x = op.in(0);
  NodeAttributes attributes{{"mode", std::string(how.nearest ? "nearest" : "linear")},
                            {"coordinate_transformation_mode", how.transform}};
  if (how.nearest) attributes.emplace_back("nearest_mode", how.rounding);
  std::vector<ValueId> inputs{x, kNoValue, kNoValue, kNoValue};
  const auto in = op.shape(0);
  if (in && in->size() == 4 && (*in)[2] > 0 && (*in)[3] > 0 && size[0] % (*in)[2] == 0 &&
      size[1] % (*in)[3] == 0) {
    inputs[2] = make.floats(
        {1, 1, static_cast<float>(size[0] / (*in)[2]), static_cast<float>(size[1] / (*in)[3])});
  } else {
    const ValueId outer = make.node(
        "Slice", {make.node("Shape", {x}), make.ints({0}), make.ints({2}), make.ints({0})});
    inputs[3] = make.node("Concat", {outer, make.ints(size)}, {{"axis", std::int64_t{0}}});
  }
  op.set(make.node("Resize", inputs, attributes));
}

void read_resize(Op& op) {
  Resizing how{.nearest = op.as() == "nearest"};
  const bool corners = op.number("align_corners", 0, 2) != 0;
  const bool half = op.number("half_pixel_centers", 0, 3) != 0;
  if (corners) how.transform = "align_corners";
  if (half) how.transform = "half_pixel";
  if (corners || half) how.rounding = "round_prefer_ceil";
  resize(op, how, op.need_ints("size", 1));
}

/// MindSpore Lite's: method and coordinates by number.
void read_lite_resize(Op& op) {
  const std::int64_t method = op.number("method", 0);
  const std::int64_t transform = op.number("coordinate_transform_mode", 0);
  if (method < 0 || method > 1 || transform < 0 || transform > 2 || op.number("format", 0) != 0) {
    fail(ErrorKind::Unsupported, "its method {} or coordinates {} are not read", method, transform);
  }
  constexpr auto kTransforms =
      std::to_array<std::string_view>({"asymmetric", "align_corners", "half_pixel"});
  Resizing how{.nearest = method == 1,
               .transform = std::string(kTransforms[static_cast<std::size_t>(transform)])};
  if (transform != 0) how.rounding = "round_prefer_ceil";
  const auto size = op.ints("size", 1);
  resize(op, how, size ? *size : Ints{op.number("new_height", 0), op.number("new_width", 0)});
}

ValueId pad(Op& op, const Ints& begins, const Ints& ends, const std::string& mode, double value) {
  Ints pads = begins;
  pads.insert(pads.end(), ends.begin(), ends.end());
  std::vector<ValueId> inputs{op.in(0), op.make().ints(pads)};
  if (mode == "constant") inputs.push_back(op.make().scalar(value));
  return op.make().node("Pad", inputs, {{"mode", mode}});
}

/// PyTorch's order: the last dimension first.
void read_pad_v3(Op& op) {
  const Ints pairs = op.need_ints("paddings", 1);
  const auto shape = op.shape(0);
  if (!shape || pairs.size() % 2 != 0 || pairs.size() / 2 > shape->size() ||
      op.number("paddings_contiguous", 1) == 0) {
    fail(ErrorKind::Unsupported, "its paddings are {} numbers for an input that is not known",
         pairs.size());
  }
  Ints begins(shape->size(), 0), ends(shape->size(), 0);
  for (std::size_t i = 0; i < pairs.size() / 2; ++i) {
    begins[shape->size() - 1 - i] = pairs[2 * i];
    ends[shape->size() - 1 - i] = pairs[2 * i + 1];
  }
  const std::string mode = op.text("mode", "constant");
  const std::string known = mode == "replicate" ? "edge" : mode;
  if (known != "constant" && known != "reflect" && known != "edge") {
    fail(ErrorKind::Unsupported, "its mode is '{}', which is not read", mode);
  }
  op.set(pad(op, begins, ends, known, op.real("value", 0, 2)));
}

/// Begin and end of each dimension.
void read_pad(Op& op) {
  const Entry* given = op.argument("paddings", 1);
  Ints pairs;
  if (given != nullptr && given->kind == Entry::Kind::List) {
    for (const Entry& each : given->list) {
      for (const Entry& number : each.list) pairs.push_back(number.number);
    }
  }
  if (pairs.empty()) pairs = op.need_ints("paddings", 1);
  if (pairs.empty() || pairs.size() % 2 != 0) fail(ErrorKind::BadModel, "its paddings are odd");
  Ints begins, ends;
  for (std::size_t i = 0; i < pairs.size(); i += 2) {
    begins.push_back(pairs[i]);
    ends.push_back(pairs[i + 1]);
  }
  const std::int64_t mode = op.number("padding_mode", 0);
  if (mode < 0 || mode > 1) fail(ErrorKind::Unsupported, "its mode {} is not read", mode);
  op.set(pad(op, begins, ends, mode == 1 ? "reflect" : "constant", op.real("constant_value", 0)));
}

void read_blocks(Op& op) {
  const std::int64_t block = op.number("block_size", 0);
  if (block <= 0 || op.text("format", "NCHW") != "NCHW") {
    fail(ErrorKind::Unsupported, "its block size is {}, or channels are last", block);
  }
  op.set(op.make().node(op.as(), {op.in(0)}, {{"blocksize", block}}));
}

constexpr auto kRows = std::to_array<OpRow>({
    {"ResizeBilinear", read_resize, "linear"},
    {"ResizeBilinearV2", read_resize, "linear"},
    {"ResizeNearestNeighbor", read_resize, "nearest"},
    {"ResizeNearestNeighborV2", read_resize, "nearest"},
    {"Resize", read_lite_resize},
    {"Pad", read_pad},
    {"PadV3", read_pad_v3},
    {"PadFusion", read_pad},
    {"DepthToSpace", read_blocks, "DepthToSpace"},
    {"SpaceToDepth", read_blocks, "SpaceToDepth"},
});

}  // namespace

std::span<const OpRow> image_rows() { return kRows; }

}  // namespace quench::mindir
