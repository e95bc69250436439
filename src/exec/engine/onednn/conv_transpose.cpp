// SPDX-License-Identifier: Apache-2.0
// Transposed convolution on NHWC memory.
#include <cstring>

#include "exec/engine/kernels/conv.h"
#include "exec/engine/kernels/direct_conv.h"
#include "exec/engine/onednn/fast.h"
#include "exec/engine/onednn/linear.h"
#include "exec/engine/parallel.h"

namespace quench::exec {
namespace {

using dnnl::memory;
constexpr auto kF32 = memory::data_type::f32;
constexpr auto kNhwc = at::MemoryFormat::ChannelsLast;

class FastConvTranspose {
 public:
  /// `weight` is [I, O, H, W], as ONNX has it.
  FastConvTranspose(ConvAttributes attributes, Fusion fusion, Ints extra, const at::Tensor& weight,
                    const at::Tensor& bias)
      : attributes_(std::move(attributes)),
        fusion_(std::move(fusion)),
        extra_(std::move(extra)),
        bias_(bias.defined() ? bias.to(at::kFloat).contiguous() : bias) {
    const at::Tensor plain = weight.to(at::kFloat).contiguous().transpose(0, 1);
    weight_shape_ = plain.sizes().vec();
    weights_ = PackedWeights(plain, describe(plain));
  }

  void operator()(Call& call) {
    const at::Tensor src = to_nhwc(call.in(FloatLayerNode::kX));
    if (src.dim() != 4 || src.size(1) != weight_shape_[1]) {
      fail(ErrorKind::BadData, "the input has shape {}, but the weights want {} channels",
           to_string(src.sizes().vec()), weight_shape_[1]);
    }
    const Window& window = attributes_.window;
    Ints shape = {src.size(0), weight_shape_[0]};
    for (std::size_t i = 0; i < 2; ++i) {
      const std::int64_t extent = (weight_shape_[2 + i] - 1) * window.dilations[i] + 1;
      shape.push_back((src.size(static_cast<std::int64_t>(2 + i)) - 1) * window.strides[i] +
                      extent - window.pads[i] - window.pads[2 + i] + extra_[i]);
    }
    const at::Tensor dst = at::empty(shape, at::TensorOptions(at::kFloat).memory_format(kNhwc));
    Plan& plan = plans_.get(src.sizes().vec(), [&] { return make_plan(src, shape); });
    point(plan.src, src);
    point(plan.dst, dst);
    plan.execute();
    call.set(0, dst);
  }

 private:
  Plan make_plan(const at::Tensor& src, const Ints& dst_shape) {
    const Window& window = attributes_.window;
    const memory::desc src_desc(src.sizes().vec(), kF32, memory::format_tag::nhwc);
    const memory::desc dst_desc(dst_shape, kF32, memory::format_tag::nhwc);
    const memory::desc any(weight_shape_, kF32, memory::format_tag::any);
    memory::desc bias_desc;
    if (bias_.defined()) bias_desc = memory::desc(bias_.sizes().vec(), kF32, memory::format_tag::x);
    const Ints dilates = {window.dilations[0] - 1, window.dilations[1] - 1};
    const dnnl::deconvolution_forward::desc desc(
        dnnl::prop_kind::forward_inference, dnnl::algorithm::deconvolution_direct, src_desc, any,
        bias_desc, dst_desc, window.strides, dilates, {window.pads[0], window.pads[1]},
        {window.pads[2] - extra_[0], window.pads[3] - extra_[1]});
    dnnl::deconvolution_forward::primitive_desc pd(
        desc, attributes_for(fusion_, ResidualForm::Separate, dst_desc), dnnl_engine());
    Plan plan = plan_of_layer<dnnl::deconvolution_forward>(pd, weights_, bias_);
    plan.bind(pd, fusion_, ResidualForm::Separate);
    return plan;
  }

  ConvAttributes attributes_;
  Fusion fusion_;
  Ints extra_;
  Ints weight_shape_;
  PackedWeights weights_;
  at::Tensor bias_;
  PlanCache plans_;
};

/// Kernel and stride are equal, so no two taps meet: one matrix product, then a shuffle. oneDNN's
/// own form took 4 to 10 times as long (2x2 kernels, 24 to 96 channels).
class TiledConvTranspose {
 public:
  TiledConvTranspose(Fusion fusion, const at::Tensor& weight, const at::Tensor& bias)
      : out_(weight.size(1)), height_(weight.size(2)), width_(weight.size(3)) {
    const at::Tensor taps = weight.to(at::kFloat).permute({0, 2, 3, 1});
    const at::Tensor tiled = bias.defined() ? bias.to(at::kFloat).repeat({height_ * width_}) : bias;
    linear_ =
        std::make_unique<FastLinear>(taps.reshape({weight.size(0), -1}), tiled, std::move(fusion));
  }

  at::Tensor operator()(const at::Tensor& src) {
    const std::int64_t rows = src.size(2);
    const std::int64_t columns = src.size(3);
    const Ints tiles = {src.size(0), rows, columns, height_, width_, out_};
    const at::Tensor products = at::empty(tiles, at::TensorOptions(at::kFloat));
    linear_->multiply(src, products, {}, ResidualForm::Separate);
    const at::Tensor dst = at::empty({src.size(0), out_, rows * height_, columns * width_},
                                     at::TensorOptions(at::kFloat).memory_format(kNhwc));
    spread(products, dst);
    return dst;
  }

 private:
  /// The tiles of a row of pixels become `height_` rows.
  void spread(const at::Tensor& products, const at::Tensor& dst) const {
    const std::int64_t columns = products.size(2);
    const std::int64_t run = width_ * out_;
    const std::int64_t tile = height_ * run;
    const float* from = products.data_ptr<float>();
    auto* to = dst.data_ptr<float>();
    constexpr std::int64_t kGrain = 1 << 14;
    const std::int64_t grain =
        std::max<std::int64_t>(kGrain / std::max<std::int64_t>(columns * run, 1), 1);
    share(0, products.size(0) * products.size(1) * height_, grain, [&](auto begin, auto end) {
      for (auto line = begin; line < end; ++line) {
        const float* first = from + line / height_ * columns * tile + line % height_ * run;
        copy_runs(first, tile, to + line * columns * run, columns, run);
      }
    });
  }

  /// `count` runs, `stride` apart, to lie side by side.
  static void copy_runs(const float* from, std::int64_t stride, float* to, std::int64_t count,
                        std::int64_t run) {
    constexpr std::int64_t kVector = 4;
    for (std::int64_t i = 0; i < count; ++i, from += stride, to += run) {
      std::int64_t k = 0;
      for (; k + kVector <= run; k += kVector)
        std::memcpy(to + k, from + k, kVector * sizeof(float));
      for (; k < run; ++k) to[k] = from[k];
    }
  }

  std::int64_t out_;
  std::int64_t height_;
  std::int64_t width_;
  std::unique_ptr<FastLinear> linear_;
};

bool is_tiled(const Window& window, const Ints& extra, const at::Tensor& weight) {
  const Ints zeros = {0, 0};
  const Ints kernel = {weight.size(2), weight.size(3)};
  return window.strides == kernel && window.dilations == Ints{1, 1} && extra == zeros &&
         window.pads == Ints{0, 0, 0, 0};
}

template <typename Product>
Kernel tiled_kernel(Product product, std::int64_t channels) {
  auto shared = std::make_shared<Product>(std::move(product));
  return Kernel([shared, channels](Call& call) {
    const at::Tensor src = to_nhwc(call.in(FloatLayerNode::kX));
    if (src.dim() != 4 || src.size(1) != channels) {
      fail(ErrorKind::BadData, "the input has shape {}, but the weights want {} channels",
           to_string(src.sizes().vec()), channels);
    }
    call.set(0, (*shared)(src));
  });
}

}  // namespace

std::optional<Kernel> make_fast_conv_transpose(const OpContext& context) {
  std::string refusal;
  const auto attributes = conv_attributes(context, 1, refusal);
  const Node& node = context.node;
  const at::Tensor weight = context.constant(FloatLayerNode::kW);
  const bool fits = attributes && attributes->rank == 2 && attributes->groups == 1 &&
                    attributes->window.auto_pad == "NOTSET" &&
                    node.get_ints("output_shape").empty() && weight.defined() &&
                    weight.dim() == 4 && weight.numel() > 0 && weight.scalar_type() == at::kFloat &&
                    (!context.has_input(FloatLayerNode::kBias) ||
                     context.constant(FloatLayerNode::kBias).defined());
  if (!fits || node.input(FloatLayerNode::kResidual) != kNoValue) return std::nullopt;
  const bool grows = std::ranges::any_of(attributes->window.pads, [](auto pad) { return pad < 0; });
  if (grows) return std::nullopt;
  Ints extra = node.get_ints("output_padding");
  extra.resize(2, 0);
  if (is_tiled(attributes->window, extra, weight)) {
    const Fusion fusion = Fusion::of(node);
    const at::Tensor bias = context.take_constant(FloatLayerNode::kBias);
    context.take_constant(FloatLayerNode::kW);
    auto direct =
        context.among_bytes ? DirectConvTranspose::make(fusion, weight, bias) : std::nullopt;
    if (direct) return tiled_kernel(std::move(*direct), weight.size(0));
    return tiled_kernel(TiledConvTranspose(fusion, weight, bias), weight.size(0));
  }
  auto kernel = std::make_shared<FastConvTranspose>(*attributes, Fusion::of(node), extra,
                                                    context.take_constant(FloatLayerNode::kW),
                                                    context.take_constant(FloatLayerNode::kBias));
  return Kernel([kernel](Call& call) { (*kernel)(call); });
}

}  // namespace quench::exec
