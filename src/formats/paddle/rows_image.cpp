// SPDX-License-Identifier: Apache-2.0
// Paddle's operators on images: resizing, padding, rearranging, sampling.
#include <array>

#include "base/format.h"
#include "formats/paddle/layout.h"
#include "formats/paddle/op.h"

namespace quench::paddle {
namespace {

using Ints = std::vector<std::int64_t>;

Attributes resize_attributes(Op& op, std::string_view mode) {
  const bool corners = op.flag("align_corners");
  const bool half_pixel = mode == "cubic" || (mode == "linear" && op.integer("align_mode") == 0);
  std::string transform = half_pixel ? "half_pixel" : "asymmetric";
  if (corners) transform = "align_corners";
  Attributes attributes{{"mode", std::string(mode)}, {"coordinate_transformation_mode", transform}};
  if (mode == "nearest") {
    attributes.emplace_back("nearest_mode", std::string(corners ? "round_prefer_ceil" : "floor"));
  }
  if (mode == "cubic") attributes.emplace_back("cubic_coeff_a", -0.75F);
  return attributes;
}

/// The sizes in full: those of batch and channels are the input's.
ValueId full_sizes(Op& op, ValueId x, const IntList& spatial) {
  const ValueId outer = op.slice(op.sizes(x), 0, 0, 2);
  return op.node("Concat", {outer, op.as_value(spatial)}, {{"axis", std::int64_t{0}}});
}

Ints fixed_sizes(Op& op, std::size_t dims) {
  constexpr std::array<std::string_view, 3> kNames{"out_d", "out_h", "out_w"};
  Ints sizes;
  for (std::size_t i = 3 - dims; i < 3; ++i) sizes.push_back(op.integer(kNames[i]));
  return sizes;
}

ValueId resized(Op& op, ValueId x, std::string_view mode) {
  const auto dims = static_cast<std::size_t>(op.need_rank("X") - 2);
  if (dims < 1 || dims > 3) fail(ErrorKind::BadModel, "its input is no image");
  const Attributes attributes = resize_attributes(op, mode);
  // A list of sizes, a tensor of them, scales, fixed sizes: the first that is there counts.
  if (op.has("SizeTensor") || op.has("OutSize")) {
    return op.node("Resize", {x, kNoValue, kNoValue, full_sizes(op, x, op.list("sizes"))},
                   attributes);
  }
  if (op.has("Scale")) {
    const ValueId ones = op.constant(Tensor::of<float>({2}, {1.0F, 1.0F}));
    ValueId scales = op.cast(op.reshape(op.in("Scale"), {-1}), DType::Float32);
    if (op.shape("Scale") != Shape{static_cast<std::int64_t>(dims)}) {
      scales = op.node("Expand", {scales, op.ints({static_cast<std::int64_t>(dims)})});
    }
    scales = op.node("Concat", {ones, scales}, {{"axis", std::int64_t{0}}});
    return op.node("Resize", {x, kNoValue, scales}, attributes);
  }
  const std::vector<double> given = op.reals("scale");
  const bool scaled = !given.empty() && given.front() > 0;
  if (!scaled) {
    return op.node(
        "Resize",
        {x, kNoValue, kNoValue, full_sizes(op, x, {.numbers = fixed_sizes(op, dims), .value = -1})},
        attributes);
  }
  std::vector<float> scales{1, 1};
  for (std::size_t i = 0; i < dims; ++i) {
    scales.push_back(static_cast<float>(given[std::min(i, given.size() - 1)]));
  }
  const Tensor tensor = Tensor::of<float>({std::ssize(scales)}, std::span<const float>(scales));
  return op.node("Resize", {x, kNoValue, op.constant(tensor)}, attributes);
}

template <const char* kMode>
void read_interp(Op& op) {
  const Layout layout(op, "X", op.text("data_layout"));
  layout.set(op, "Out", resized(op, layout.first(op, op.in("X")), kMode));
}

std::string pad_mode(const std::string& mode) {
  if (mode == "replicate") return "edge";
  if (mode == "circular") return "wrap";
  return mode;
}

/// Pads of all dimensions, begins and then ends.
ValueId padded(Op& op, ValueId x, const Ints& pads, const std::string& mode, double value) {
  return op.node("Pad", {x, op.ints(pads), op.scalar(value, op.dtype("X"))},
                 {{"mode", pad_mode(mode)}});
}

/// `given` holds a begin and an end for each spatial dimension; `order` says for which.
Ints spread(const Ints& given, std::initializer_list<std::size_t> order, std::size_t rank,
            bool channels_last) {
  if (given.size() != 2 * order.size() || rank != order.size() + 2) {
    fail(ErrorKind::BadModel, "it has {} paddings for {} dimensions", given.size(), rank);
  }
  Ints pads(2 * rank, 0);
  const std::size_t first = channels_last ? 1 : 2;
  std::size_t at = 0;
  for (const std::size_t dim : order) {
    pads[first + dim] = given[at++];
    pads[rank + first + dim] = given[at++];
  }
  return pads;
}

void read_pad2d(Op& op) {
  const Ints pads = spread(op.numbers("paddings"), {0, 1}, 4, op.text("data_format") == "NHWC");
  op.set("Out", padded(op, op.in("X"), pads, op.text("mode"), op.real("pad_value")));
}

void read_pad3d(Op& op) {
  const bool last = op.text("data_format") == "NDHWC";
  const Ints pads = spread(op.numbers("paddings"), {2, 1, 0}, 5, last);
  op.set("Out", padded(op, op.in("X"), pads, op.text("mode"), op.real("value")));
}

void read_pad(Op& op) {
  const Ints given = op.integers("paddings");
  const std::size_t rank = given.size() / 2;
  Ints pads(2 * rank, 0);
  for (std::size_t i = 0; i < rank; ++i) {
    pads[i] = given[2 * i];
    pads[rank + i] = given[2 * i + 1];
  }
  op.set("Out", padded(op, op.in("X"), pads, "constant", op.number("pad_value")));
}

void read_pixel_shuffle(Op& op) {
  const Layout layout(op, "X", op.text("data_format"));
  layout.set(op, "Out",
             op.node("DepthToSpace", {layout.first(op, op.in("X"))},
                     {{"blocksize", op.integer("upscale_factor")}, {"mode", std::string("CRD")}}));
}

void read_shuffle_channel(Op& op) {
  const Layout layout(op, "X", op.text("data_format"));
  const ValueId x = layout.first(op, op.in("X"));
  const auto shape = layout.channels_first(op.shape("X").value_or(Shape()));
  const std::int64_t groups = op.integer("groups");
  if (shape.size() < 2 || shape[1] < 0 || groups <= 0 || shape[1] % groups != 0) {
    fail(ErrorKind::Unsupported, "its channels are not known, or are no multiple of its groups");
  }
  const ValueId split = op.reshape(x, {0, groups, shape[1] / groups, -1});
  layout.set(op, "Out", op.node("Reshape", {op.transpose(split, {0, 2, 1, 3}), op.sizes(x)}));
}

void read_grid_sampler(Op& op) {
  op.set("Output", op.node("GridSample", {op.in("X"), op.in("Grid")},
                           {{"mode", op.text("mode")},
                            {"padding_mode", op.text("padding_mode")},
                            {"align_corners", std::int64_t{op.flag("align_corners")}}}));
}

constexpr char kNearest[] = "nearest", kLinear[] = "linear", kCubic[] = "cubic";

/// PIR: x, out_size, size_tensor, scale_tensor.
constexpr std::string_view kInterpInputs = "X OutSize SizeTensor Scale / sizes:SizeTensor,OutSize";
constexpr std::string_view kInterpAttributes =
    "out_d=-1 out_h=-1 out_w=-1 scale= align_corners=true align_mode=1 "
    "data_layout|data_format=NCHW sizes=";
constexpr std::string_view kPad3d = "paddings mode=constant value|pad_value=0 data_format=NCDHW";

constexpr auto kRows = std::to_array<OpRow>({
    {"nearest_interp_v2", "nearest_interp", kInterpInputs, "Out", kInterpAttributes,
     read_interp<kNearest>},
    {"bilinear_interp_v2", "bilinear_interp", kInterpInputs, "Out", kInterpAttributes,
     read_interp<kLinear>},
    {"bicubic_interp_v2", "bicubic_interp", kInterpInputs, "Out", kInterpAttributes,
     read_interp<kCubic>},
    {"linear_interp_v2", "linear_interp", kInterpInputs, "Out", kInterpAttributes,
     read_interp<kLinear>},
    {"trilinear_interp_v2", "trilinear_interp", kInterpInputs, "Out", kInterpAttributes,
     read_interp<kLinear>},
    {"nearest_interp", "-", kInterpInputs, "Out", kInterpAttributes, read_interp<kNearest>},
    {"bilinear_interp", "-", kInterpInputs, "Out", kInterpAttributes, read_interp<kLinear>},
    {"bicubic_interp", "-", kInterpInputs, "Out", kInterpAttributes, read_interp<kCubic>},
    {"linear_interp", "-", kInterpInputs, "Out", kInterpAttributes, read_interp<kLinear>},
    {"trilinear_interp", "-", kInterpInputs, "Out", kInterpAttributes, read_interp<kLinear>},
    {"pad2d", "-", "X paddings:Paddings", "Out",
     "paddings=0,0,0,0 mode=constant pad_value=0 data_format=NCHW", read_pad2d},
    {"pad3d", "", "X paddings:Paddings", "Out", kPad3d, read_pad3d},
    {"pad", "", "X pad_value:", "Out", "paddings pad_value=0", read_pad},
    {"pixel_shuffle", "", "X", "Out", "upscale_factor=1 data_format=NCHW", read_pixel_shuffle},
    {"shuffle_channel", "", "X", "Out", "groups|group=1 data_format=NCHW", read_shuffle_channel},
    {"channel_shuffle", "", "X", "Out", "groups=1 data_format=NCHW", read_shuffle_channel},
    {"grid_sampler", "grid_sample", "X Grid", "Output",
     "mode=bilinear padding_mode=zeros align_corners=true", read_grid_sampler, 16},
});

}  // namespace

std::span<const OpRow> image_rows() { return kRows; }

}  // namespace quench::paddle
