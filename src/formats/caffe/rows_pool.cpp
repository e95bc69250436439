// SPDX-License-Identifier: Apache-2.0
// Caffe's pools. They round sizes up, and an average counts the padding, but nothing behind it.
#include <algorithm>
#include <array>

#include "base/format.h"
#include "formats/caffe/layer.h"
#include "formats/caffe/rows.h"

namespace quench::caffe {
namespace {

/// Along one dimension.
struct Side {
  std::int64_t in = 0, kernel = 0, stride = 1, pad = 0, out = 0;
  std::int64_t behind = 0;  ///< padding at the end, so that rounding down gives `out`
};

Side side_of(const PoolingParameter& given, std::int64_t in, bool height) {
  const bool kernel = height ? given.has_kernel_h() : given.has_kernel_w();
  const bool stride = height ? given.has_stride_h() : given.has_stride_w();
  const bool pad = height ? given.has_pad_h() : given.has_pad_w();
  Side side{.in = in,
            .kernel = kernel ? (height ? given.kernel_h() : given.kernel_w()) : given.kernel_size(),
            .stride = stride ? (height ? given.stride_h() : given.stride_w()) : given.stride(),
            .pad = pad ? (height ? given.pad_h() : given.pad_w()) : given.pad()};
  if (side.kernel <= 0 || side.stride <= 0 || side.pad < 0 || side.pad >= side.kernel ||
      side.in + 2 * side.pad < side.kernel) {
    fail(ErrorKind::BadModel, "a kernel of {}, stride {} and pad {} do not fit {} pixels",
         side.kernel, side.stride, side.pad, side.in);
  }
  const std::int64_t room = side.in + 2 * side.pad - side.kernel;
  const bool up = given.round_mode() == PoolingParameter::CEIL;
  side.out = (up ? (room + side.stride - 1) / side.stride : room / side.stride) + 1;
  // No window may begin in the padding behind.
  if (side.pad > 0 && (side.out - 1) * side.stride >= side.in + side.pad) --side.out;
  side.behind =
      std::max<std::int64_t>(0, (side.out - 1) * side.stride + side.kernel - side.in - side.pad);
  return side;
}

/// How much of each window Caffe's average divides by, to all of it.
std::vector<float> shares(const Side& side) {
  std::vector<float> result;
  for (std::int64_t i = 0; i < side.out; ++i) {
    const std::int64_t begin = i * side.stride - side.pad;
    const std::int64_t end = std::min(begin + side.kernel, side.in + side.pad);
    result.push_back(static_cast<float>(side.kernel) / static_cast<float>(end - begin));
  }
  return result;
}

ValueId average(Layer& layer, const Side& h, const Side& w, NodeAttributes attributes) {
  GraphMaker& make = layer.make();
  if (h.pad == 0 && w.pad == 0) return make.node("AveragePool", {layer.in()}, attributes);
  attributes.emplace_back("count_include_pad", std::int64_t{1});
  ValueId y = make.node("AveragePool", {layer.in()}, attributes);
  const auto scale = [&](const Side& side, const Shape& shape) {
    const std::vector<float> by = shares(side);
    if (std::ranges::all_of(by, [](float each) { return each == 1; })) return;
    y = make.node("Mul", {y, make.constant(Tensor::of<float>(shape, std::span<const float>(by)))});
  };
  scale(h, {h.out, 1});
  scale(w, {w.out});
  return y;
}

void read_pooling(Layer& layer) {
  layer.expect_image();
  const PoolingParameter& given = layer.parameter().pooling_param();
  const bool max = given.pool() == PoolingParameter::MAX;
  if (given.pool() == PoolingParameter::STOCHASTIC) {
    fail(ErrorKind::Unsupported, "stochastic pooling is not read");
  }
  Shape shape = layer.shape();
  if (given.global_pooling()) {
    shape[2] = shape[3] = 1;
    return layer.set(layer.make().node(max ? "GlobalMaxPool" : "GlobalAveragePool", {layer.in()}),
                     shape);
  }
  const Side h = side_of(given, shape[2], true);
  const Side w = side_of(given, shape[3], false);
  shape[2] = h.out;
  shape[3] = w.out;
  const NodeAttributes attributes{{"kernel_shape", Ints{h.kernel, w.kernel}},
                                  {"strides", Ints{h.stride, w.stride}},
                                  {"pads", Ints{h.pad, w.pad, h.behind, w.behind}}};
  layer.set(max ? layer.make().node("MaxPool", {layer.in()}, attributes)
                : average(layer, h, w, attributes),
            shape);
}

constexpr auto kRows = std::to_array<LayerRow>({{"Pooling", read_pooling}});

}  // namespace

std::span<const LayerRow> pool_rows() { return kRows; }

}  // namespace quench::caffe
