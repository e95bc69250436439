// SPDX-License-Identifier: Apache-2.0
// Transposed convolution of bytes on NHWC memory.
#include "exec/engine/int8/layers.h"
#include "exec/engine/int8/tail.h"
#include "exec/engine/kernels/conv.h"

namespace quench::exec {
namespace {

using dnnl::memory;
constexpr auto kNhwc = at::MemoryFormat::ChannelsLast;

/// Kernel and stride are equal, so no two taps meet: one matrix product, then a shuffle.
class TiledIntegerConvTranspose {
 public:
  TiledIntegerConvTranspose(const ByteParams& source, IntegerTail tail,
                            const SignedWeights& weights, const at::Tensor& bias)
      : source_(source), float_type_(tail.float_type), quantised_(tail.out.has_value()) {
    const at::Tensor& data = weights.data;
    out_ = data.size(1);
    height_ = data.size(2);
    width_ = data.size(3);
    depth_ = data.size(0);
    SignedWeights taps;
    taps.data = data.permute({0, 2, 3, 1}).reshape({depth_, -1}).contiguous();
    const at::Tensor sums = at::sum(taps.data, {0}, false, at::kLong).contiguous();
    taps.sums.assign(sums.data_ptr<std::int64_t>(), sums.data_ptr<std::int64_t>() + sums.numel());
    const std::vector<float> scales = tail.sum_scales;
    if (scales.size() > 1) {
      for (std::int64_t i = 1; i < height_ * width_; ++i) {
        tail.sum_scales.insert(tail.sum_scales.end(), scales.begin(), scales.end());
      }
    }
    const at::Tensor tiled = bias.defined() ? bias.repeat({height_ * width_}) : bias;
    multiply_ = make_integer_rows(source, tail, taps, tiled);
  }

  void operator()(Call& call) const {
    const at::Tensor src = call.in(LayerNode::kX).contiguous(kNhwc);
    if (src.dim() != 4 || src.size(1) != depth_ || src.scalar_type() != source_.type) {
      fail(ErrorKind::BadData, "the input is {} of shape {}, but the weights want {} channels",
           c10::toString(src.scalar_type()), to_string(src.sizes().vec()), depth_);
    }
    const Ints tiles = {src.size(0), src.size(2), src.size(3), height_, width_, out_};
    const at::Tensor rows = src.permute({0, 2, 3, 1}).reshape({-1, depth_});
    const at::Tensor nhwc =
        multiply_(rows)
            .reshape(tiles)
            .permute({0, 1, 3, 2, 4, 5})
            .reshape({src.size(0), src.size(2) * height_, src.size(3) * width_, out_});
    const at::Tensor result = nhwc.permute({0, 3, 1, 2});
    call.set(0, quantised_ ? result : result.to(float_type_));
  }

 private:
  ByteParams source_;
  at::ScalarType float_type_;
  bool quantised_;
  std::int64_t depth_ = 0;
  std::int64_t out_ = 0;
  std::int64_t height_ = 0;
  std::int64_t width_ = 0;
  RowsFunction multiply_;
};

/// Any other form: the source's pixels are set apart by the stride, with zero points between them,
/// and convolved with the kernel turned round.
class StuffedIntegerConvTranspose {
 public:
  StuffedIntegerConvTranspose(ConvAttributes attributes, Ints extra, const ByteParams& source,
                              const IntegerTail& tail, const SignedWeights& weights,
                              const at::Tensor& bias)
      : window_(attributes.window), extra_(std::move(extra)), source_(source) {
    SignedWeights turned = weights;
    turned.data = weights.data.flip({2, 3}).transpose(0, 1).contiguous();
    for (std::size_t i = 0; i < 2; ++i) {
      reach_[i] = (turned.data.size(static_cast<std::int64_t>(i) + 2) - 1) * window_.dilations[i];
    }
    depth_ = turned.data.size(1);
    attributes.window.strides = {1, 1};
    attributes.window.pads = {0, 0, 0, 0};
    convolve_ = make_conv_function(attributes, source, tail, turned, bias);
  }

  void operator()(Call& call) const {
    const at::Tensor& src = call.in(LayerNode::kX);
    if (src.dim() != 4 || src.size(1) != depth_ || src.scalar_type() != source_.type) {
      fail(ErrorKind::BadData, "the input is {} of shape {}, but the weights want {} channels",
           c10::toString(src.scalar_type()), to_string(src.sizes().vec()), depth_);
    }
    call.set(0, convolve_(stuffed(src)));
  }

 private:
  /// Which pixels of an axis have a place, and where the first of them lies.
  struct Places {
    std::int64_t size, first, count, at;
  };

  Places places(std::int64_t size, std::size_t axis) const {
    const std::int64_t stride = window_.strides[axis];
    const std::int64_t lost = window_.pads[axis] + window_.pads[axis + 2];
    Places result{};
    result.size = (size - 1) * stride + 1 + 2 * reach_[axis] + extra_[axis] - lost;
    const std::int64_t origin = reach_[axis] - window_.pads[axis];
    result.first = origin < 0 ? (-origin + stride - 1) / stride : 0;
    result.at = origin + result.first * stride;
    const std::int64_t room = result.size - result.at;
    result.count = std::clamp<std::int64_t>((room + stride - 1) / stride, 0, size - result.first);
    return result;
  }

  at::Tensor stuffed(const at::Tensor& src) const {
    const Places rows = places(src.size(2), 0);
    const Places columns = places(src.size(3), 1);
    if (rows.size <= reach_[0] || columns.size <= reach_[1]) {
      fail(ErrorKind::BadData, "an input of shape {} leaves nothing of the result",
           to_string(src.sizes().vec()));
    }
    at::Tensor result = at::empty({src.size(0), depth_, rows.size, columns.size},
                                  at::TensorOptions(source_.type).memory_format(kNhwc));
    result.fill_(source_.zero);
    if (rows.count <= 0 || columns.count <= 0) return result;
    const auto spread = [](const at::Tensor& tensor, std::int64_t axis, const Places& at,
                           std::int64_t stride) {
      return tensor.slice(axis, at.at, at.at + (at.count - 1) * stride + 1, stride);
    };
    spread(spread(result, 2, rows, window_.strides[0]), 3, columns, window_.strides[1])
        .copy_(src.narrow(2, rows.first, rows.count).narrow(3, columns.first, columns.count));
    return result;
  }

  Window window_;
  Ints extra_;
  ByteParams source_;
  std::int64_t reach_[2] = {0, 0};
  std::int64_t depth_ = 0;
  BytesFunction convolve_;
};

bool is_tiled(const Window& window, const Ints& extra, const at::Tensor& weight) {
  return window.strides == Ints{weight.size(2), weight.size(3)} && window.dilations == Ints{1, 1} &&
         extra == Ints{0, 0} && window.pads == Ints{0, 0, 0, 0};
}

}  // namespace

std::optional<Kernel> make_integer_conv_transpose(const OpContext& context) {
  std::string refusal;
  const auto attributes = conv_attributes(context, LayerNode::kW, refusal);
  const Node& node = context.node;
  const at::Tensor weight = context.constant(LayerNode::kW);
  const bool fits =
      context.fast && context.byte_products && attributes && attributes->rank == 2 &&
      attributes->groups == 1 && attributes->window.auto_pad == "NOTSET" &&
      node.get_ints("output_shape").empty() && weight.defined() && weight.dim() == 4 &&
      weight.numel() > 0 && !context.has_input(LayerNode::kResidual) &&
      (!context.has_input(LayerNode::kBias) || context.constant(LayerNode::kBias).defined());
  if (!fits) return std::nullopt;
  Ints extra = node.get_ints("output_padding");
  extra.resize(2, 0);
  const auto source = take_params(context, LayerNode::kXScale, LayerNode::kXZero,
                                  context.input_dtype(LayerNode::kX));
  if (!source) return std::nullopt;
  auto tail = take_tail(context, *source);
  const auto weights = take_weights(context, LayerNode::kW, LayerNode::kWZero, 1);
  if (!tail || !weights || weights->zero != 0) return std::nullopt;
  const at::Tensor bias = context.take_constant(LayerNode::kBias);
  if (!is_tiled(attributes->window, extra, weight)) {
    auto any = std::make_shared<StuffedIntegerConvTranspose>(*attributes, extra, *source, *tail,
                                                             *weights, bias);
    return Kernel([any](Call& call) { (*any)(call); });
  }
  auto tiled =
      std::make_shared<TiledIntegerConvTranspose>(*source, std::move(*tail), *weights, bias);
  return Kernel([tiled](Call& call) { (*tiled)(call); });
}

}  // namespace quench::exec
