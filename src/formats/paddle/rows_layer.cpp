// SPDX-License-Identifier: Apache-2.0
// Paddle's convolutions and pools.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/format.h"
#include "formats/paddle/layout.h"
#include "formats/paddle/op.h"
#include "formats/paddle/translate.h"

namespace quench::paddle {
namespace {

using Ints = std::vector<std::int64_t>;

/// ONNX's pads (all begins, then all ends) of one number a dimension, or of a begin and end each.
Ints pads_of(const Ints& given, std::size_t dims) {
  Ints pads(2 * dims, 0);
  if (given.size() != dims && given.size() != 2 * dims) {
    fail(ErrorKind::BadModel, "its paddings are {} numbers; {} or {} are wanted", given.size(),
         dims, 2 * dims);
  }
  const bool pairs = given.size() != dims;
  for (std::size_t i = 0; i < dims; ++i) {
    pads[i] = given[pairs ? 2 * i : i];
    pads[dims + i] = given[pairs ? 2 * i + 1 : i];
  }
  return pads;
}

/// Sets the padding by its algorithm; gives whether it is "SAME".
bool add_padding(Op& op, Attributes& attributes, std::size_t dims) {
  const std::string algorithm = op.text("padding_algorithm");
  if (algorithm == "SAME") {
    attributes.emplace_back("auto_pad", std::string("SAME_UPPER"));
    return true;
  }
  const Ints none(dims, 0);
  attributes.emplace_back("pads",
                          pads_of(algorithm == "VALID" ? none : op.integers("paddings"), dims));
  return false;
}

Attributes window(Op& op) {
  Attributes attributes{{"strides", op.integers("strides")}};
  // Paddle ignores dilations where it pads to the same size.
  if (!add_padding(op, attributes, op.integers("strides").size())) {
    attributes.emplace_back("dilations", op.integers("dilations"));
  }
  attributes.emplace_back("group", op.integer("groups"));
  return attributes;
}

void read_conv(Op& op) {
  const Layout layout(op, "Input", op.text("data_format"));
  layout.set(
      op, "Output",
      op.node("Conv", {layout.first(op, op.in("Input")), op.in("Filter"), op.in_or_none("Bias")},
              window(op)));
}

/// What the size that is asked for leaves over.
Ints output_padding(Op& op, const Ints& wanted) {
  const Shape x = op.shape("Input").value_or(Shape());
  const Shape filter = op.need_shape("Filter");
  const Ints strides = op.integers("strides");
  const Ints dilations = op.integers("dilations");
  const Ints pads = pads_of(op.integers("paddings"), strides.size());
  Ints result;
  for (std::size_t i = 0; i < strides.size() && i < wanted.size(); ++i) {
    if (i + 2 >= x.size() || x[i + 2] < 0 || i + 2 >= filter.size() || i >= dilations.size()) {
      fail(ErrorKind::Unsupported, "it asks for an output size of an input whose size is open");
    }
    const std::int64_t least = (x[i + 2] - 1) * strides[i] - pads[i] - pads[strides.size() + i] +
                               dilations[i] * (filter[i + 2] - 1) + 1;
    result.push_back(wanted[i] - least);
  }
  return result;
}

void read_conv_transpose(Op& op) {
  const Layout layout(op, "Input", op.text("data_format"));
  Attributes attributes = window(op);
  Ints extra = op.integers("output_padding");
  const Ints wanted = op.numbers("output_size");
  if (!wanted.empty()) extra = output_padding(op, wanted);
  if (!extra.empty()) attributes.emplace_back("output_padding", extra);
  layout.set(op, "Output",
             op.node("ConvTranspose",
                     {layout.first(op, op.in("Input")), op.in("Filter"), op.in_or_none("Bias")},
                     attributes));
}

void read_deformable(Op& op) {
  const Ints strides = op.integers("strides");
  op.set("Output", op.node("DeformConv",
                           {op.in("Input"), op.in("Filter"), op.in("Offset"), kNoValue,
                            op.in_or_none("Mask")},
                           {{"strides", strides},
                            {"pads", pads_of(op.integers("paddings"), strides.size())},
                            {"dilations", op.integers("dilations")},
                            {"group", op.integer("groups")},
                            {"offset_group", op.integer("deformable_groups")}}));
}

/// Parts that overlap by at most one, averaged or searched one by one, along one axis after the
/// other: what a pool of a given output size is where the sizes do not divide.
ValueId adaptive(Op& op, ValueId x, const Shape& shape, const Ints& sizes, bool is_max) {
  constexpr std::int64_t kMostParts = 256;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto axis = static_cast<std::int64_t>(i + 2);
    const std::int64_t from = shape[i + 2];
    if (sizes[i] <= 0 || sizes[i] > kMostParts) {
      fail(ErrorKind::Unsupported, "it makes {} parts of a dimension", sizes[i]);
    }
    std::vector<ValueId> parts;
    for (std::int64_t k = 0; k < sizes[i]; ++k) {
      const std::int64_t start = k * from / sizes[i];
      const std::int64_t end = ((k + 1) * from + sizes[i] - 1) / sizes[i];
      parts.push_back(op.reduce(is_max ? "ReduceMax" : "ReduceMean", op.slice(x, axis, start, end),
                                {axis}, true));
    }
    x = op.node("Concat", parts, {{"axis", axis}});
  }
  return x;
}

/// The shape of X, of which all but the batch must be known.
Shape spatial_shape(Op& op) {
  Shape shape = op.shape("X").value_or(Shape());
  const bool known = shape.size() > 2 && std::ranges::all_of(shape.begin() + 1, shape.end(),
                                                             [](auto size) { return size > 0; });
  if (!known) {
    fail(ErrorKind::Unsupported,
         "a pool of a given output size is read only where the program says the sizes of its "
         "input; export the model with a fixed input size");
  }
  return shape;
}

ValueId read_adaptive(Op& op, const Layout& layout, ValueId x, const Ints& sizes, bool is_max) {
  const Shape shape = layout.channels_first(spatial_shape(op));
  if (sizes.size() + 2 > shape.size()) fail(ErrorKind::BadModel, "it has too many sizes");
  bool divides = true;
  Ints kernel;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::int64_t from = shape[i + 2];
    divides = divides && sizes[i] > 0 && from % sizes[i] == 0;
    kernel.push_back(sizes[i] > 0 ? from / sizes[i] : 0);
  }
  if (!divides) return adaptive(op, x, shape, sizes, is_max);
  return op.node(is_max ? "MaxPool" : "AveragePool", {x},
                 {{"kernel_shape", kernel}, {"strides", kernel}});
}

/// Whether somebody wants to know where the greatest elements were.
bool reads_mask(Op& op) {
  return op.makes("Mask") && op.translator().num_readers(op.names("Mask").front()) > 0;
}

/// Paddle counts places in their own image, ONNX from the first element of all.
ValueId pool_with_mask(Op& op, ValueId x, const Attributes& attributes) {
  const auto made = op.nodes("MaxPool", {x}, 2, attributes);
  const ValueId image = op.reduce("ReduceProd", op.slice(op.sizes(x), 0, 2, kEnd), {0}, false);
  op.set("Mask", op.cast(op.node("Mod", {made[1], image}), op.dtype("Mask")));
  return made[0];
}

/// Each element goes to its place in an image of zeros.
void read_unpool(Op& op) {
  const Ints wanted = op.numbers("output_size");
  if (wanted.size() < 2) fail(ErrorKind::Unsupported, "the program does not say its output size");
  const Ints size(wanted.end() - 2, wanted.end());
  if (size[0] <= 0 || size[1] <= 0 || size[0] > kEnd / size[1]) {
    fail(ErrorKind::BadModel, "it makes an image of {} x {}", size[0], size[1]);
  }
  const ValueId x = op.in("X");
  const ValueId outer = op.slice(op.sizes(x), 0, 0, 2);
  const auto shape = [&](const Ints& inner) {
    return op.node("Concat", {outer, op.ints(inner)}, {{"axis", std::int64_t{0}}});
  };
  const Tensor zero = convert(Tensor::of<float>({1}, {0.0F}), op.dtype("X"));
  const ValueId zeros = op.node("ConstantOfShape", {shape({size[0] * size[1]})}, {{"value", zero}});
  const ValueId places = op.cast(op.reshape(op.in("Indices"), {0, 0, -1}), DType::Int64);
  const ValueId made = op.node("ScatterElements", {zeros, places, op.reshape(x, {0, 0, -1})},
                               {{"axis", std::int64_t{2}}});
  op.set("Out", op.node("Reshape", {made, shape(size)}));
}

ValueId pool(Op& op, const Layout& layout, ValueId x) {
  const bool is_max = op.text("pooling_type") != "avg";
  const Ints sizes = op.numbers("ksize");
  const bool ones = std::ranges::all_of(sizes, [](std::int64_t size) { return size == 1; });
  if (op.flag("global_pooling") || (op.flag("adaptive") && ones)) {
    return op.node(is_max ? "GlobalMaxPool" : "GlobalAveragePool", {x});
  }
  if (op.flag("adaptive")) return read_adaptive(op, layout, x, sizes, is_max);
  Attributes attributes{{"kernel_shape", sizes}, {"strides", op.integers("strides")}};
  add_padding(op, attributes, sizes.size());
  attributes.emplace_back("ceil_mode", std::int64_t{op.flag("ceil_mode")});
  if (reads_mask(op)) return pool_with_mask(op, x, attributes);
  if (!is_max) attributes.emplace_back("count_include_pad", std::int64_t{!op.flag("exclusive")});
  return op.node(is_max ? "MaxPool" : "AveragePool", {x}, attributes);
}

/// Paddle takes no absolute values, so that only even norms are norms.
void read_lp_pool(Op& op) {
  const Layout layout(op, "X", op.text("data_format"));
  const double norm = op.real("norm_type");
  const bool plain = !op.flag("global_pooling") && !op.flag("adaptive");
  if (!plain || norm < 2 || norm > 64 || std::fmod(norm, 2) != 0) {
    fail(ErrorKind::Unsupported, "it is read for windows and an even norm; its norm is {}", norm);
  }
  Attributes attributes{{"kernel_shape", op.numbers("ksize")},
                        {"strides", op.integers("strides")},
                        {"p", static_cast<std::int64_t>(norm)}};
  add_padding(op, attributes, 2);
  if (op.flag("ceil_mode")) attributes.emplace_back("ceil_mode", std::int64_t{1});
  layout.set(op, "Out", op.node("LpPool", {layout.first(op, op.in("X"))}, attributes));
}

void read_pool(Op& op) {
  const Layout layout(op, "X", op.text("data_format"));
  layout.set(op, "Out", pool(op, layout, layout.first(op, op.in("X"))));
}

constexpr std::string_view kConvAttributes =
    "strides=1,1 paddings=0,0 padding_algorithm=EXPLICIT dilations=1,1 groups=1 data_format=NCHW";
constexpr std::string_view kTransposeAttributes =
    "strides=1,1 paddings=0,0 padding_algorithm=EXPLICIT dilations=1,1 groups=1 data_format=NCHW "
    "output_padding= output_size=";
constexpr std::string_view kConv3d =
    "strides=1,1,1 paddings=0,0,0 padding_algorithm=EXPLICIT dilations=1,1,1 groups=1 "
    "data_format=NCDHW";
constexpr std::string_view kTranspose3d =
    "strides=1,1,1 paddings=0,0,0 padding_algorithm=EXPLICIT dilations=1,1,1 groups=1 "
    "data_format=NCHW output_padding= output_size=";
constexpr std::string_view kPool3d =
    "ksize|kernel_size strides=1,1,1 paddings=0,0,0 padding_algorithm=EXPLICIT pooling_type "
    "global_pooling=false adaptive=false exclusive=true ceil_mode=false data_format=NCDHW";
constexpr std::string_view kPoolAttributes =
    "ksize|kernel_size strides=1,1 paddings=0,0 padding_algorithm=EXPLICIT pooling_type "
    "global_pooling=false adaptive=false exclusive=true ceil_mode=false data_format=NCHW";

constexpr auto kRows = std::to_array<OpRow>({
    {"conv2d", "", "Input Filter / Bias", "Output", kConvAttributes, read_conv},
    {"depthwise_conv2d", "", "Input Filter / Bias", "Output", kConvAttributes, read_conv},
    {"conv2d_transpose", "", "Input Filter output_size: / Bias", "Output", kTransposeAttributes,
     read_conv_transpose},
    {"depthwise_conv2d_transpose", "", "Input Filter output_size: / Bias", "Output",
     kTransposeAttributes, read_conv_transpose},
    {"deformable_conv", "", "Input Offset Filter Mask", "Output",
     "strides=1,1 paddings=0,0 dilations=1,1 groups=1 deformable_groups=1", read_deformable, 19},
    {"max_pool2d_with_index", "", "X", "Out Mask",
     "ksize|kernel_size strides=1,1 paddings=0,0 padding_algorithm=EXPLICIT pooling_type=max "
     "global_pooling=false adaptive=false ceil_mode=false data_format=NCHW",
     read_pool},
    {"pool2d", "", "X ksize:", "Out", kPoolAttributes, read_pool},
    {"lp_pool2d", "", "X ksize:", "Out",
     "ksize|kernel_size strides=1,1 paddings=0,0 padding_algorithm=EXPLICIT pooling_type=lp "
     "global_pooling=false adaptive=false exclusive=true ceil_mode=false data_format=NCHW "
     "norm_type=2",
     read_lp_pool, 18},
    {"conv3d", "", "Input Filter / Bias", "Output", kConv3d, read_conv},
    {"conv3d_transpose", "", "Input Filter output_size: / Bias", "Output", kTranspose3d,
     read_conv_transpose},
    {"pool3d", "", "X ksize:", "Out", kPool3d, read_pool},
    {"max_pool3d_with_index", "", "X", "Out Mask",
     "ksize|kernel_size strides=1,1,1 paddings=0,0,0 padding_algorithm=EXPLICIT pooling_type=max "
     "global_pooling=false adaptive=false ceil_mode=false data_format=NCDHW",
     read_pool},
    {"unpool", "", "X Indices output_size:", "Out", "output_size= data_format=NCHW", read_unpool},
});

}  // namespace

std::span<const OpRow> layer_rows() { return kRows; }

}  // namespace quench::paddle
