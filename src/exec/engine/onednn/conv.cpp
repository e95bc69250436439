// SPDX-License-Identifier: Apache-2.0
// Convolution on NHWC memory, with bias, residual and activation in one primitive.
#include "exec/engine/kernels/conv.h"

#include "exec/engine/kernels/direct_conv.h"
#include "exec/engine/onednn/fast.h"
#include "exec/engine/onednn/plan.h"

namespace quench::exec {
namespace {

using dnnl::memory;
constexpr auto kF32 = memory::data_type::f32;
constexpr auto kNhwc = at::MemoryFormat::ChannelsLast;

/// A tensor with one spatial axis gets a second one of size 1.
at::Tensor to_2d(const at::Tensor& tensor) {
  return tensor.dim() == 3 ? tensor.unsqueeze(2) : tensor;
}

/// The weights as oneDNN sees them: [G,] O/G, I/G, H, W.
memory::desc weight_desc(const at::Tensor& weight, std::int64_t groups) {
  if (groups == 1) return describe(weight);
  auto sizes = weight.sizes().vec();
  sizes[0] /= groups;
  sizes.insert(sizes.begin(), groups);
  return {sizes, kF32, memory::format_tag::goihw};
}

class FastConv {
 public:
  FastConv(ConvAttributes attributes, Fusion fusion, const at::Tensor& weight, at::Tensor bias)
      : attributes_(std::move(attributes)), fusion_(std::move(fusion)), bias_(std::move(bias)) {
    const at::Tensor plain = to_2d(weight.to(at::kFloat)).contiguous();
    weight_shape_ = plain.sizes().vec();
    weights_ = PackedWeights(plain, weight_desc(plain, attributes_.groups));
    if (bias_.defined()) bias_ = bias_.to(at::kFloat).contiguous();
    if (attributes_.rank == 1) pad_to_2d(attributes_.window);
  }

  /// Takes the direct form where it is faster, whose loop the thread pool shares. The input is
  /// float32.
  bool take_direct(const at::Tensor& weight) {
    direct_ = DirectConv::make(attributes_, fusion_, weight.to(at::kFloat), bias_);
    return direct_.has_value();
  }

  void operator()(Call& call) {
    const at::Tensor& given = call.in(FloatLayerNode::kX);
    const at::Tensor src = direct_ ? given : to_nhwc(to_2d(given));
    check(src);
    const Ints shape = convolved_shape(attributes_.window, src.sizes(), weight_shape_);
    if (!direct_ && fusion_.residual != Residual::None && pads_exceed_width(src)) {
      call.set(0, unfused(call, given, src, shape));
      return;
    }
    ResidualForm form = ResidualForm::Separate;
    at::Tensor dst;
    if (given.dim() == 4) {
      dst = destination(call, fusion_, kNhwc, shape, form);
    } else {
      dst = at::empty(shape, at::TensorOptions(at::kFloat).memory_format(kNhwc));
    }
    if (direct_) {
      (*direct_)(src, dst);
    } else if (dst.numel() != 0) {
      execute(call, src, dst, form, fusion_);
    }
    call.set(0, given.dim() == 3 ? dst.squeeze(2) : dst);
  }

 private:
  /// oneDNN 2.6.3 adds wrong residuals where columns of the weight lie in the padding alone.
  bool pads_exceed_width(const at::Tensor& src) const {
    const Ints pad = pads(src);
    return std::max(pad[1], pad[3]) > src.size(3);
  }

  at::Tensor unfused(Call& call, const at::Tensor& given, const at::Tensor& src,
                     const Ints& shape) {
    at::Tensor dst = at::empty(shape, at::TensorOptions(at::kFloat).memory_format(kNhwc));
    if (dst.numel() != 0) execute(call, src, dst, ResidualForm::Separate, Fusion{});
    if (given.dim() == 3) dst = dst.squeeze(2);
    return apply(fusion_, dst, call.in(FloatLayerNode::kResidual));
  }

  void check(const at::Tensor& src) const {
    const std::int64_t channels = weight_shape_[1] * attributes_.groups;
    if (src.dim() != 4 || src.size(1) != channels) {
      fail(ErrorKind::BadData, "the input has shape {}, but the weights want {} channels",
           to_string(src.sizes().vec()), channels);
    }
  }

  Ints pads(const at::Tensor& src) const {
    return attributes_.window.pads_for(src.sizes().slice(2), {weight_shape_[2], weight_shape_[3]});
  }

  void execute(Call& call, const at::Tensor& src, const at::Tensor& dst, ResidualForm form,
               const Fusion& fusion) {
    Ints key = src.sizes().vec();
    key.push_back(form == ResidualForm::InDestination ? 1 : 0);
    Plan& plan = plans_.get(key, [&] { return make_plan(src, dst.sizes().vec(), form, fusion); });
    point(plan.src, src);
    point(plan.dst, dst);
    at::Tensor residual;
    if (plan.residual) {
      residual = to_nhwc(to_2d(call.in(FloatLayerNode::kResidual)));
      point(plan.residual, residual);
    }
    plan.execute();
  }

  Plan make_plan(const at::Tensor& src, const Ints& dst_shape, ResidualForm form,
                 const Fusion& fusion) {
    const Window& window = attributes_.window;
    const Ints pad = pads(src);
    const memory::desc src_desc(src.sizes().vec(), kF32, memory::format_tag::nhwc);
    const memory::desc dst_desc(dst_shape, kF32, memory::format_tag::nhwc);
    auto weight_dims = weight_shape_;
    if (attributes_.groups != 1) {
      weight_dims[0] /= attributes_.groups;
      weight_dims.insert(weight_dims.begin(), attributes_.groups);
    }
    const memory::desc any(weight_dims, kF32, memory::format_tag::any);
    memory::desc bias_desc;
    if (bias_.defined()) bias_desc = memory::desc(bias_.sizes().vec(), kF32, memory::format_tag::x);
    const Ints dilates = {window.dilations[0] - 1, window.dilations[1] - 1};
    const dnnl::convolution_forward::desc desc(
        dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, src_desc, any,
        bias_desc, dst_desc, window.strides, dilates, {pad[0], pad[1]}, {pad[2], pad[3]});
    const ThreadScope threads(2 * dst_shape[0] * dst_shape[1] * dst_shape[2] * dst_shape[3] *
                              weight_shape_[1] * weight_shape_[2] * weight_shape_[3]);
    dnnl::convolution_forward::primitive_desc pd(desc, attributes_for(fusion, form, dst_desc),
                                                 dnnl_engine());
    Plan plan = plan_of_layer<dnnl::convolution_forward>(pd, weights_, bias_);
    plan.bind(pd, fusion, form);
    return plan;
  }

  ConvAttributes attributes_;
  Fusion fusion_;
  Ints weight_shape_;
  PackedWeights weights_;
  at::Tensor bias_;
  std::optional<DirectConv> direct_;
  PlanCache plans_;
};

bool is_plain_float(DType dtype) {
  return dtype == DType::Float32 || dtype == DType::Float16 || dtype == DType::BFloat16;
}

}  // namespace

std::optional<Kernel> make_fast_conv(const OpContext& context) {
  std::string refusal;
  const auto attributes = conv_attributes(context, 1, refusal);
  const bool fits = attributes && attributes->rank <= 2 &&
                    is_plain_float(context.input_dtype(FloatLayerNode::kW)) &&
                    context.constant(FloatLayerNode::kW).defined() &&
                    context.constant(FloatLayerNode::kW).numel() > 0 &&
                    (!context.has_input(FloatLayerNode::kBias) ||
                     context.constant(FloatLayerNode::kBias).defined());
  if (!fits) return std::nullopt;
  const at::Tensor weight = context.take_constant(FloatLayerNode::kW);
  const bool shape_fits = weight.dim() == static_cast<std::int64_t>(attributes->rank) + 2 &&
                          weight.size(0) % attributes->groups == 0;
  if (!shape_fits)
    return Kernel(refuse("its weights of shape {} do not fit its attributes",
                         to_string(weight.sizes().vec())));
  auto conv = std::make_shared<FastConv>(*attributes, Fusion::of(context.node), weight,
                                         context.take_constant(FloatLayerNode::kBias));
  Kernel kernel([conv](Call& call) { (*conv)(call); });
  const bool directly = context.among_bytes &&
                        context.input_dtype(FloatLayerNode::kX) == DType::Float32 &&
                        conv->take_direct(weight);
  return directly ? sharing(std::move(kernel)) : kernel;
}

}  // namespace quench::exec
