// SPDX-License-Identifier: Apache-2.0
// Convolution of bytes on NHWC memory: bias, activation and rounding in one primitive.
#include "exec/engine/kernels/conv.h"

#include "exec/engine/int8/bytes.h"
#include "exec/engine/int8/layers.h"
#include "exec/engine/int8/tail.h"

namespace quench::exec {
namespace {

using dnnl::memory;
constexpr auto kNhwc = at::MemoryFormat::ChannelsLast;

Ints grouped(Ints shape, std::int64_t groups) {
  if (groups == 1) return shape;
  shape[0] /= groups;
  shape.insert(shape.begin(), groups);
  return shape;
}

class IntegerConv {
 public:
  IntegerConv(ConvAttributes attributes, const ByteParams& source, IntegerTail tail,
              const SignedWeights& weights, const at::Tensor& bias)
      : attributes_(std::move(attributes)), source_(source), tail_(std::move(tail)) {
    const at::Tensor plain = to_2d(weights.data).contiguous();
    shape_ = plain.sizes().vec();
    const auto layout =
        attributes_.groups == 1 ? memory::format_tag::oihw : memory::format_tag::goihw;
    weights_ =
        IntegerWeights(plain, {grouped(shape_, attributes_.groups), memory::data_type::s8, layout});
    bias_ = sums_bias(bias, tail_.sum_scales, weights.sums, 0);
    shifted_bias_ = sums_bias(bias, tail_.sum_scales, weights.sums, source.zero);
    if (attributes_.rank == 1) pad_to_2d(attributes_.window);
  }

  /// Of a 4-D tensor.
  at::Tensor operator()(const at::Tensor& given) {
    const at::Tensor src = given.contiguous(kNhwc);
    check_channels(src, source_, shape_[1] * attributes_.groups);
    Plan& plan = plans_.get(src.sizes(), [&] { return make_plan(src); });
    at::Tensor dst = new_tensor(plan.dst_shape, plan.open ? at::kFloat : tail_.type(), kNhwc);
    if (plan.primitive) {
      point(plan.src, src);
      point(plan.dst, dst);
      plan.execute();
    }
    if (plan.open) dst = close_tail(tail_, std::move(dst));
    return tail_.out ? dst : dst.to(tail_.float_type);
  }

 private:
  Ints pads(const at::Tensor& src) const {
    return attributes_.window.pads_for(src.sizes().slice(2), {shape_[2], shape_[3]});
  }

  Plan make_plan(const at::Tensor& src) {
    return plan_of_tail([&](TailForm form) { return make_plan(src, form); });
  }

  /// Without a primitive where the result is empty.
  Plan make_plan(const at::Tensor& src, TailForm form) {
    dnnl::primitive_attr attributes = integer_attributes(tail_, 1, form);
    Plan plan;
    plan.dst_shape = convolved_shape(attributes_.window, src.sizes(), shape_);
    const Ints dst_shape = plan.dst_shape;
    if (std::ranges::find(dst_shape, 0) != dst_shape.end()) return plan;
    const Window& window = attributes_.window;
    const Ints pad = pads(src);
    // Padding stands for the zero point. Without padding the bias takes care of it, which is
    // faster.
    const bool padded = std::ranges::any_of(pad, [](auto each) { return each != 0; });
    const bool shifts = source_.zero != 0 && padded;
    if (shifts) attributes.set_zero_points(DNNL_ARG_SRC, 0, {source_.zero});
    const at::Tensor& bias = shifts ? bias_ : shifted_bias_;
    memory::desc bias_desc;
    if (bias.defined()) {
      bias_desc = {bias.sizes().vec(), dnnl_type(bias.scalar_type()), memory::format_tag::x};
    }
    const Ints dilates = {window.dilations[0] - 1, window.dilations[1] - 1};
    const dnnl::convolution_forward::desc desc(
        dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
        {src.sizes().vec(), dnnl_type(source_.type), memory::format_tag::nhwc},
        {grouped(shape_, attributes_.groups), memory::data_type::s8, memory::format_tag::any},
        bias_desc, {dst_shape, dnnl_type(tail_, form), memory::format_tag::nhwc}, window.strides,
        dilates, {pad[0], pad[1]}, {pad[2], pad[3]});
    constexpr std::int64_t kFasterThanFloat = 16;
    const ThreadScope threads(2 * dst_shape[0] * dst_shape[1] * dst_shape[2] * dst_shape[3] *
                              shape_[1] * shape_[2] * shape_[3] / kFasterThanFloat);
    dnnl::convolution_forward::primitive_desc pd(desc, attributes, dnnl_engine());
    plan = plan_of<dnnl::convolution_forward>(pd, form != TailForm::Open);
    plan.dst_shape = dst_shape;
    plan.set_weights(weights_.as(pd.weights_desc()));
    plan.set_bias(bias_desc, bias);
    return plan;
  }

  ConvAttributes attributes_;
  ByteParams source_;
  IntegerTail tail_;
  Ints shape_;
  IntegerWeights weights_;
  at::Tensor bias_;
  at::Tensor shifted_bias_;
  PlanCache plans_;
};

/// A convolution as a kernel, which takes images of one spatial axis too.
Kernel as_kernel(BytesFunction convolve) {
  return [convolve = std::move(convolve)](Call& call) {
    const at::Tensor& given = call.in(LayerNode::kX);
    const at::Tensor dst = convolve(to_2d(given));
    call.set(0, given.dim() == 3 ? dst.squeeze(2) : dst);
  };
}

BytesFunction by_onednn(const ConvAttributes& attributes, const ByteParams& source,
                        const IntegerTail& tail, const SignedWeights& weights,
                        const at::Tensor& bias) {
  auto conv = std::make_shared<IntegerConv>(attributes, source, tail, weights, bias);
  return [conv](const at::Tensor& src) { return (*conv)(src); };
}

}  // namespace

void check_channels(const at::Tensor& src, const ByteParams& source, std::int64_t channels) {
  if (src.dim() == 4 && src.size(1) == channels && src.scalar_type() == source.type) return;
  fail(ErrorKind::BadData, "the input is {} of shape {}, but the weights want {} channels",
       c10::toString(src.scalar_type()), to_string(src.sizes().vec()), channels);
}

BytesFunction make_conv_function(const ConvAttributes& attributes, const ByteParams& source,
                                 const IntegerTail& tail, const SignedWeights& weights,
                                 const at::Tensor& bias) {
  if (auto own = make_tiled_conv(attributes, source, tail, weights, bias)) return own;
  return by_onednn(attributes, source, tail, weights, bias);
}

std::optional<Kernel> make_integer_conv(const OpContext& context) {
  std::string refusal;
  const auto attributes = conv_attributes(context, LayerNode::kW, refusal);
  const at::Tensor weight = context.constant(LayerNode::kW);
  const bool fits =
      context.fast && context.byte_products && attributes && attributes->rank <= 2 &&
      weight.defined() && weight.numel() > 0 &&
      weight.dim() == static_cast<std::int64_t>(attributes->rank) + 2 &&
      weight.size(0) % attributes->groups == 0 &&
      (!context.has_input(LayerNode::kBias) || context.constant(LayerNode::kBias).defined());
  if (!fits) return std::nullopt;
  const auto source = take_params(context, LayerNode::kXScale, LayerNode::kXZero,
                                  context.input_dtype(LayerNode::kX));
  if (!source) return std::nullopt;
  auto tail = take_tail(context, *source);
  const auto weights = take_weights(context, LayerNode::kW, LayerNode::kWZero, 0);
  if (!tail || !weights || weights->zero != 0) return std::nullopt;
  const at::Tensor bias = context.take_constant(LayerNode::kBias);
  if (auto own = make_integer_depthwise(*attributes, *source, *tail, *weights, bias)) return own;
  if (auto own = make_tiled_conv(*attributes, *source, *tail, *weights, bias)) {
    return sharing(as_kernel(std::move(own)));
  }
  return as_kernel(by_onednn(*attributes, *source, *tail, *weights, bias));
}

}  // namespace quench::exec
