// SPDX-License-Identifier: Apache-2.0
// Convolution of bytes on NHWC memory: bias, residual, activation and rounding in one primitive.
#include "exec/engine/kernels/conv.h"

#include "exec/engine/int8/bytes.h"
#include "exec/engine/int8/layers.h"
#include "exec/engine/int8/tail.h"

namespace quench::exec {
namespace {

using dnnl::memory;
constexpr auto kNhwc = at::MemoryFormat::ChannelsLast;

at::Tensor to_2d(const at::Tensor& tensor) {
  return tensor.dim() == 3 ? tensor.unsqueeze(2) : tensor;
}

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

  void operator()(Call& call) {
    const at::Tensor& given = call.in(LayerNode::kX);
    const at::Tensor src = to_2d(given).contiguous(kNhwc);
    check(src);
    Plan& plan = plans_.get(src.sizes(), [&] { return make_plan(src); });
    at::Tensor dst;
    if (plan.open) {
      dst =
          run_open(plan, src, tail_.residual ? to_2d(call.in(LayerNode::kResidual)) : at::Tensor());
    } else if (given.dim() == 4) {
      dst = integer_destination(call, tail_, plan.dst_shape, kNhwc);
    } else {
      dst = at::empty(plan.dst_shape, at::TensorOptions(tail_.type()).memory_format(kNhwc));
      if (tail_.residual)
        dst.view(tail_.residual->type).copy_(to_2d(call.in(LayerNode::kResidual)));
    }
    if (!plan.open) run(plan, src, dst);
    if (!tail_.out) dst = dst.to(tail_.float_type);
    call.set(0, given.dim() == 3 ? dst.squeeze(2) : dst);
  }

  /// Of a 4-D tensor, without a residual.
  at::Tensor convolve(const at::Tensor& given) {
    const at::Tensor src = given.contiguous(kNhwc);
    check(src);
    Plan& plan = plans_.get(src.sizes(), [&] { return make_plan(src); });
    at::Tensor dst;
    if (plan.open) {
      dst = run_open(plan, src, {});
    } else {
      dst = new_tensor(plan.dst_shape, tail_.type(), kNhwc);
      run(plan, src, dst);
    }
    return tail_.out ? dst : dst.to(tail_.float_type);
  }

 private:
  static void run(Plan& plan, const at::Tensor& src, const at::Tensor& dst) {
    if (!plan.primitive) return;
    point(plan.src, src);
    point(plan.dst, dst);
    plan.execute();
  }

  at::Tensor run_open(Plan& plan, const at::Tensor& src, const at::Tensor& residual) const {
    at::Tensor floats = new_tensor(plan.dst_shape, at::kFloat, kNhwc);
    run(plan, src, floats);
    return close_tail(tail_, std::move(floats), residual);
  }

  void check(const at::Tensor& src) const {
    const std::int64_t channels = shape_[1] * attributes_.groups;
    if (src.dim() != 4 || src.size(1) != channels || src.scalar_type() != source_.type) {
      fail(ErrorKind::BadData, "the input is {} of shape {}, but the weights want {} channels",
           c10::toString(src.scalar_type()), to_string(src.sizes().vec()), channels);
    }
  }

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
    const Ints& dst_shape = plan.dst_shape;
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
    plan.primitive = form == TailForm::Open ? make_primitive<dnnl::convolution_forward>(pd)
                                            : dnnl::convolution_forward(pd);
    plan.src = placeholder(pd.src_desc());
    plan.weights = weights_.as(pd.weights_desc());
    plan.args = {{DNNL_ARG_SRC, plan.src}, {DNNL_ARG_WEIGHTS, plan.weights}};
    if (bias.defined()) {
      plan.args[DNNL_ARG_BIAS] = memory(bias_desc, dnnl_engine(), bias.data_ptr());
    }
    plan.bind(pd, {}, ResidualForm::Separate);
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

/// A layer whose own result is rounded before the residual is added.
Kernel with_sum(Kernel layer, const IntegerTail& tail) {
  const ByteStore store =
      clamped_store(*tail.out, tail.sum.activation, tail.sum.alpha, tail.sum.beta);
  const bool first = tail.residual_first;
  const ByteSumFunction sum = first ? make_byte_sum(*tail.residual, *tail.middle, *tail.out, store)
                                    : make_byte_sum(*tail.middle, *tail.residual, *tail.out, store);
  return [run = std::move(layer.run), sum, first](Call& call) {
    std::vector<at::Tensor> slots = {call.in(LayerNode::kX), at::Tensor()};
    const std::array<int, 1> in = {0};
    const std::array<int, 1> out = {1};
    Call alone(slots, in, out);
    run(alone);
    call.set(0, first ? sum(call.in(LayerNode::kResidual), slots[1])
                      : sum(slots[1], call.in(LayerNode::kResidual)));
  };
}

Kernel make_layer(const ConvAttributes& attributes, const ByteParams& source,
                  const IntegerTail& tail, const SignedWeights& weights, const at::Tensor& bias) {
  if (auto own = make_integer_depthwise(attributes, source, tail, weights, bias)) return *own;
  if (auto own = make_tiled_conv(attributes, source, tail, weights, bias)) return *own;
  if (tail.middle) {
    return with_sum(make_layer(attributes, source, until_middle(tail), weights, bias), tail);
  }
  auto conv = std::make_shared<IntegerConv>(attributes, source, tail, weights, bias);
  return Kernel([conv](Call& call) { (*conv)(call); });
}

}  // namespace

BytesFunction make_conv_function(const ConvAttributes& attributes, const ByteParams& source,
                                 const IntegerTail& tail, const SignedWeights& weights,
                                 const at::Tensor& bias) {
  if (auto own = make_tiled_conv_function(attributes, source, tail, weights, bias)) return own;
  auto conv = std::make_shared<IntegerConv>(attributes, source, tail, weights, bias);
  return [conv](const at::Tensor& src) { return conv->convolve(src); };
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
  return make_layer(*attributes, *source, *tail, *weights, bias);
}

}  // namespace quench::exec
