// SPDX-License-Identifier: Apache-2.0
// ConvInteger: the sums of a convolution of bytes, whose zero point is known only when it runs.
#include "exec/engine/int8/layers.h"
#include "exec/engine/int8/tail.h"
#include "exec/engine/kernels/common.h"
#include "exec/engine/kernels/conv.h"

namespace quench::exec {
namespace {

using dnnl::memory;
constexpr auto kNhwc = at::MemoryFormat::ChannelsLast;

class ConvSums {
 public:
  ConvSums(ConvAttributes attributes, const SignedWeights& weights)
      : attributes_(std::move(attributes)), sums_(weights.sums) {
    shape_ = weights.data.sizes().vec();
    Ints grouped = shape_;
    if (attributes_.groups != 1) {
      grouped[0] /= attributes_.groups;
      grouped.insert(grouped.begin(), attributes_.groups);
    }
    const auto layout =
        attributes_.groups == 1 ? memory::format_tag::oihw : memory::format_tag::goihw;
    weight_dims_ = grouped;
    weights_ = IntegerWeights(weights.data, {grouped, memory::data_type::s8, layout});
    bias_ = at::zeros({shape_[0]}, at::kInt);
  }

  at::Tensor operator()(const at::Tensor& given, std::int32_t zero) {
    if (given.dim() != 4 || given.size(1) != shape_[1] * attributes_.groups) {
      fail(ErrorKind::BadData, "the input has shape {}, but the weights want {} channels",
           to_string(given.sizes().vec()), shape_[1] * attributes_.groups);
    }
    const at::Tensor src = padded(given, zero);
    Window window = attributes_.window;
    window.pads.assign(4, 0);
    window.auto_pad = "NOTSET";
    const Ints shape = convolved_shape(window, src.sizes(), shape_);
    at::Tensor dst = at::empty(shape, at::TensorOptions(at::kInt).memory_format(kNhwc));
    if (dst.numel() == 0) return dst;
    auto* bias = bias_.data_ptr<std::int32_t>();
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      bias[i] = static_cast<std::int32_t>(-zero * sums_[i]);
    }
    Ints key = src.sizes().vec();
    key.push_back(src.scalar_type() == at::kChar ? 1 : 0);
    Plan& plan = plans_.get(key, [&] { return make_plan(src, shape); });
    point(plan.src, src);
    point(plan.dst, dst);
    plan.execute();
    return dst;
  }

 private:
  /// With a frame of the zero point, which stands for nothing.
  at::Tensor padded(const at::Tensor& given, std::int32_t zero) const {
    const Ints pads = attributes_.window.pads_for(given.sizes().slice(2), {shape_[2], shape_[3]});
    if (std::ranges::all_of(pads, [](std::int64_t each) { return each == 0; })) {
      return given.contiguous(kNhwc);
    }
    const Ints shape = {given.size(0), given.size(1), given.size(2) + pads[0] + pads[2],
                        given.size(3) + pads[1] + pads[3]};
    at::Tensor result =
        at::empty(shape, at::TensorOptions(given.scalar_type()).memory_format(kNhwc));
    result.fill_(zero);
    result.narrow(2, pads[0], given.size(2)).narrow(3, pads[1], given.size(3)).copy_(given);
    return result;
  }

  Plan make_plan(const at::Tensor& src, const Ints& dst_shape) {
    const Window& window = attributes_.window;
    const memory::desc bias({shape_[0]}, memory::data_type::s32, memory::format_tag::x);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::convolution_forward::desc desc(
        dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
        {src.sizes().vec(), dnnl_type(src.scalar_type()), memory::format_tag::nhwc},
        {weight_dims_, memory::data_type::s8, memory::format_tag::any}, bias,
        {dst_shape, memory::data_type::s32, memory::format_tag::nhwc}, window.strides,
        {window.dilations[0] - 1, window.dilations[1] - 1}, {0, 0}, {0, 0});
    dnnl::convolution_forward::primitive_desc pd(desc, attributes, dnnl_engine());
    Plan plan;
    plan.primitive = make_primitive<dnnl::convolution_forward>(pd);
    plan.src = placeholder(pd.src_desc());
    plan.weights = weights_.as(pd.weights_desc());
    plan.args = {{DNNL_ARG_SRC, plan.src},
                 {DNNL_ARG_WEIGHTS, plan.weights},
                 {DNNL_ARG_BIAS, memory(bias, dnnl_engine(), bias_.data_ptr())}};
    plan.bind(pd, {}, ResidualForm::Separate);
    return plan;
  }

  ConvAttributes attributes_;
  std::vector<std::int64_t> sums_;
  Ints shape_;
  Ints weight_dims_;
  IntegerWeights weights_;
  at::Tensor bias_;  ///< what the source's zero point adds; written before each run
  PlanCache plans_;
};

}  // namespace

std::optional<Kernel> make_integer_conv_sums(const OpContext& context) {
  std::string refusal;
  const auto attributes = conv_attributes(context, 1, refusal);
  const at::Tensor weight = context.constant(1);
  const bool fits = context.fast && context.byte_products && attributes && attributes->rank == 2 &&
                    weight.defined() && weight.dim() == 4 && weight.numel() > 0 &&
                    weight.size(0) % attributes->groups == 0;
  if (!fits) return std::nullopt;
  const auto weights = take_weights(context, 1, 3, 0);
  if (!weights || weights->zero != 0) return std::nullopt;
  auto sums = std::make_shared<ConvSums>(*attributes, *weights);
  return Kernel([sums](Call& call) {
    const at::Tensor& zero = call.in(2);
    if (zero.defined() && zero.numel() != 1) {
      fail(ErrorKind::Unsupported, "the input has {} zero points; one is supported", zero.numel());
    }
    call.set(0, (*sums)(call.in(0), zero.defined() ? static_cast<std::int32_t>(to_int(zero)) : 0));
  });
}

}  // namespace quench::exec
