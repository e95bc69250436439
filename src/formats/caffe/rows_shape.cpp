// SPDX-License-Identifier: Apache-2.0
// Caffe's inputs, and layers that move elements or count them.
#include <algorithm>
#include <array>

#include "base/format.h"
#include "formats/caffe/layer.h"
#include "formats/caffe/rows.h"

namespace quench::caffe {
namespace {

void read_input(Layer& layer) {
  const InputParameter& given = layer.parameter().input_param();
  if (given.shape_size() == 0) {
    fail(ErrorKind::BadModel, "it does not say its shape (input_param)");
  }
  for (std::size_t i = 0; i < layer.num_tops(); ++i) {
    const int index = given.shape_size() == 1 ? 0 : static_cast<int>(i);
    if (index >= given.shape_size()) fail(ErrorKind::BadModel, "it has fewer shapes than tops");
    const auto& dims = given.shape(index).dim();
    layer.set_input(Shape(dims.begin(), dims.end()), i);
  }
}

void read_concat(Layer& layer) {
  const ConcatParameter& given = layer.parameter().concat_param();
  const auto axis = static_cast<std::size_t>(
      layer.axis(given.has_concat_dim() ? given.concat_dim() : given.axis()));
  Shape shape = layer.shape();
  std::vector<ValueId> parts;
  for (std::size_t i = 0; i < layer.num_bottoms(); ++i) {
    if (layer.rank(i) != layer.rank()) fail(ErrorKind::BadModel, "its bottoms differ in rank");
    parts.push_back(layer.in(i));
    if (i > 0) shape[axis] += layer.dim(axis, i);
  }
  layer.set(layer.make().node("Concat", parts, {{"axis", static_cast<std::int64_t>(axis)}}), shape);
}

void read_slice(Layer& layer) {
  const SliceParameter& given = layer.parameter().slice_param();
  const auto axis = static_cast<std::size_t>(
      layer.axis(given.has_slice_dim() ? given.slice_dim() : given.axis()));
  const std::int64_t whole = layer.dim(axis);
  const auto count = static_cast<std::int64_t>(layer.num_tops());
  Ints sizes;
  if (given.slice_point_size() == 0) {
    if (count == 0 || whole % count != 0)
      fail(ErrorKind::BadModel, "{} is no {} parts", whole, count);
    sizes.assign(static_cast<std::size_t>(count), whole / count);
  } else {
    std::int64_t before = 0;
    for (const std::uint32_t point : given.slice_point()) {
      sizes.push_back(point - before);
      before = point;
    }
    sizes.push_back(whole - before);
  }
  if (std::ssize(sizes) != count || std::ranges::any_of(sizes, [](auto s) { return s <= 0; })) {
    fail(ErrorKind::BadModel, "its slice points do not cut {} into {} parts", whole, count);
  }
  const auto parts =
      layer.make().nodes("Split", {layer.in(), layer.make().ints(sizes)}, layer.num_tops(),
                         {{"axis", static_cast<std::int64_t>(axis)}});
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Shape shape = layer.shape();
    shape[axis] = sizes[i];
    layer.set(parts[i], shape, i);
  }
}

void reshape_to(Layer& layer, const Shape& shape) {
  if (count_of(shape) != count_of(layer.shape())) {
    fail(ErrorKind::BadModel, "its bottom of shape {} does not become {}", to_string(layer.shape()),
         to_string(shape));
  }
  layer.set(layer.make().reshape(layer.in(), reshape_target(layer.shape(), shape)), shape);
}

void read_flatten(Layer& layer) {
  const FlattenParameter& given = layer.parameter().flatten_param();
  const std::int64_t first = layer.axis(given.axis());
  const std::int64_t last = layer.axis(given.end_axis());
  if (last < first) fail(ErrorKind::BadModel, "it flattens dimensions {} to {}", first, last);
  Shape shape;
  std::int64_t joined = 1;
  for (std::int64_t i = 0; i < layer.rank(); ++i) {
    const std::int64_t dim = layer.dim(static_cast<std::size_t>(i));
    if (i >= first && i <= last) joined *= dim;
    if (i < first || i > last) shape.push_back(dim);
    if (i == last) shape.push_back(joined);
  }
  reshape_to(layer, shape);
}

void read_reshape(Layer& layer) {
  const ReshapeParameter& given = layer.parameter().reshape_param();
  const Shape& in = layer.shape();
  const std::int64_t start = given.axis() < 0 ? given.axis() + layer.rank() + 1 : given.axis();
  const std::int64_t end = given.num_axes() == -1 ? layer.rank() : start + given.num_axes();
  if (start < 0 || start > layer.rank() || end < start || end > layer.rank()) {
    fail(ErrorKind::BadModel, "it reshapes dimensions {} to {} of {}", start, end, layer.rank());
  }
  Shape shape(in.begin(), in.begin() + start);
  std::ptrdiff_t open = -1;
  for (int i = 0; i < given.shape().dim_size(); ++i) {
    const std::int64_t dim = given.shape().dim(i);
    if (dim == -1 && open >= 0) fail(ErrorKind::BadModel, "it leaves two dimensions open");
    if (dim == -1) open = std::ssize(shape);
    const auto source = static_cast<std::size_t>(start + i);
    shape.push_back(dim == 0 ? layer.dim(source) : (dim == -1 ? 1 : dim));
  }
  shape.insert(shape.end(), in.begin() + end, in.end());
  const std::int64_t known = count_of(shape);
  if (open >= 0 && known > 0) shape[static_cast<std::size_t>(open)] = count_of(in) / known;
  reshape_to(layer, shape);
}

void read_permute(Layer& layer) {
  Ints perm;
  for (const std::uint32_t axis : layer.parameter().permute_param().order()) {
    perm.push_back(layer.axis(axis));
  }
  // Dimensions that are not named follow in their order.
  for (std::int64_t i = 0; i < layer.rank(); ++i) {
    if (std::ranges::count(perm, i) == 0) perm.push_back(i);
  }
  if (std::ssize(perm) != layer.rank()) fail(ErrorKind::BadModel, "it names a dimension twice");
  Shape shape;
  for (const std::int64_t axis : perm) shape.push_back(layer.dim(static_cast<std::size_t>(axis)));
  layer.set(layer.make().transpose(layer.in(), perm), shape);
}

void read_crop(Layer& layer) {
  const CropParameter& given = layer.parameter().crop_param();
  const std::int64_t first = layer.axis(given.axis());
  const std::int64_t count = layer.rank() - first;
  if (given.offset_size() > 1 && given.offset_size() != count) {
    fail(ErrorKind::BadModel, "it has {} offsets for {} dimensions", given.offset_size(), count);
  }
  Ints starts, ends, axes;
  Shape shape = layer.shape();
  for (std::int64_t i = 0; i < count; ++i) {
    const auto axis = static_cast<std::size_t>(first + i);
    const int index = given.offset_size() == 1 ? 0 : static_cast<int>(i);
    const std::int64_t offset = given.offset_size() == 0 ? 0 : given.offset(index);
    const std::int64_t size = layer.dim(axis, 1);
    if (offset + size > layer.dim(axis)) fail(ErrorKind::BadModel, "it crops more than there is");
    starts.push_back(offset);
    ends.push_back(offset + size);
    axes.push_back(first + i);
    shape[axis] = size;
  }
  GraphMaker& make = layer.make();
  layer.set(make.node("Slice", {layer.in(), make.ints(starts), make.ints(ends), make.ints(axes)}),
            shape);
}

void read_tile(Layer& layer) {
  const TileParameter& given = layer.parameter().tile_param();
  const auto axis = static_cast<std::size_t>(layer.axis(given.axis()));
  if (given.tiles() <= 0) fail(ErrorKind::BadModel, "it makes {} tiles", given.tiles());
  Ints times(static_cast<std::size_t>(layer.rank()), 1);
  times[axis] = given.tiles();
  Shape shape = layer.shape();
  shape[axis] *= given.tiles();
  layer.set(layer.make().node("Tile", {layer.in(), layer.make().ints(times)}), shape);
}

void read_reduction(Layer& layer) {
  const ReductionParameter& given = layer.parameter().reduction_param();
  const std::int64_t first = layer.axis(given.axis());
  Ints axes;
  for (std::int64_t i = first; i < layer.rank(); ++i) axes.push_back(i);
  std::string_view op = "ReduceSum";
  if (given.operation() == ReductionParameter::ASUM) op = "ReduceL1";
  if (given.operation() == ReductionParameter::SUMSQ) op = "ReduceSumSquare";
  if (given.operation() == ReductionParameter::MEAN) op = "ReduceMean";
  ValueId y = layer.make().reduce(op, layer.in(), axes, false);
  if (given.coeff() != 1) y = layer.make().node("Mul", {y, layer.make().scalar(given.coeff())});
  layer.set(y, Shape(layer.shape().begin(), layer.shape().begin() + first));
}

void read_argmax(Layer& layer) {
  const ArgMaxParameter& given = layer.parameter().argmax_param();
  if (given.top_k() != 1 || given.out_max_val()) {
    fail(ErrorKind::Unsupported, "only the greatest one's place is read (top_k: 1)");
  }
  ValueId x = layer.in();
  Shape shape = layer.shape();
  std::int64_t axis = given.axis();
  if (given.has_axis()) {
    axis = layer.axis(axis);
    shape[static_cast<std::size_t>(axis)] = 1;
  } else {
    x = layer.make().reshape(x, {0, 1, -1});
    shape = {layer.dim(0), 1, 1};
    axis = 2;
  }
  const ValueId place = layer.make().node("ArgMax", {x}, {{"axis", axis}});
  layer.set(layer.make().cast(place, DType::Float32), shape);
}

/// Groups of channels are dealt out one by one.
void read_shuffle(Layer& layer) {
  layer.expect_image();
  const std::int64_t groups = layer.parameter().shuffle_channel_param().group();
  const Shape& in = layer.shape();
  if (groups <= 0 || in[1] % groups != 0) {
    fail(ErrorKind::BadModel, "{} channels are no {} groups", in[1], groups);
  }
  GraphMaker& make = layer.make();
  ValueId x = make.reshape(layer.in(), {0, groups, in[1] / groups, in[2], in[3]});
  x = make.transpose(x, {0, 2, 1, 3, 4});
  layer.set(make.reshape(x, {0, in[1], in[2], in[3]}), in);
}

constexpr auto kRows = std::to_array<LayerRow>({
    {"Input", read_input},
    {"Concat", read_concat},
    {"Slice", read_slice},
    {"Flatten", read_flatten},
    {"Reshape", read_reshape},
    {"Permute", read_permute},
    {"Crop", read_crop},
    {"Tile", read_tile},
    {"Reduction", read_reduction},
    {"ArgMax", read_argmax},
    {"ShuffleChannel", read_shuffle},
});

}  // namespace

std::span<const LayerRow> shape_rows() { return kRows; }

}  // namespace quench::caffe
