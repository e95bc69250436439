// SPDX-License-Identifier: Apache-2.0
// Tails of integer layers as oneDNN writes them.
#include "exec/engine/int8/tail.h"

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "exec/engine/int8/bytes.h"
#include "exec/engine/kernels/common.h"
#include "exec/engine/kernels/quantize.h"

namespace quench::exec {
namespace {

using dnnl::algorithm;

/// Whether saturation alone clips as the activation does.
bool saturates_alike(const Fusion& fusion, const ByteParams& out) {
  if (fusion.activation == "relu") return out.zero == out.least();
  if (fusion.activation != "clip") return false;
  const auto steps = [&](float bound) { return std::nearbyint(bound / out.scale); };
  return steps(fusion.alpha) + static_cast<float>(out.zero) <= static_cast<float>(out.least()) &&
         steps(fusion.beta) + static_cast<float>(out.zero) >= static_cast<float>(out.greatest());
}

/// The activation over the scale of the result, where that is a matter of its parameters.
bool append_scaled(dnnl::post_ops& ops, const Fusion& fusion, float step) {
  if (fusion.activation == "relu") {
    ops.append_eltwise(1.0F, algorithm::eltwise_relu, 0.0F, 0.0F);
  } else if (fusion.activation == "leaky_relu") {
    ops.append_eltwise(1.0F, algorithm::eltwise_relu, fusion.alpha, 0.0F);
  } else if (fusion.activation == "clip") {
    ops.append_eltwise(1.0F, algorithm::eltwise_clip, fusion.alpha / step, fusion.beta / step);
  } else if (fusion.activation == "hard_sigmoid") {
    // With one linear operation only: oneDNN's kernels give a second one the first one's numbers.
    ops.append_eltwise(1.0F, algorithm::eltwise_linear, fusion.alpha, fusion.beta / step);
    ops.append_eltwise(1.0F, algorithm::eltwise_clip, 0.0F, 1.0F / step);
  } else {
    return false;
  }
  return true;
}

/// A loop of our own: libtorch would widen the weights first, to eight times their size.
std::vector<std::int64_t> channel_sums(const at::Tensor& weights, std::int64_t axis,
                                       std::int64_t zero) {
  const std::int64_t channels = weights.size(axis);
  std::int64_t inner = 1;
  for (std::int64_t i = axis + 1; i < weights.dim(); ++i) inner *= weights.size(i);
  std::vector<std::int64_t> sums(static_cast<std::size_t>(channels), 0);
  const auto* data = static_cast<const std::int8_t*>(weights.data_ptr());
  const std::int64_t outer = weights.numel() / std::max<std::int64_t>(channels * inner, 1);
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t& sum : sums) {
      std::int32_t part = 0;
      for (std::int64_t i = 0; i < inner; ++i) part += *data++;
      sum += part - zero * inner;
    }
  }
  return sums;
}

bool works_on_quotients(const Fusion& fusion) {
  return fusion.activation.empty() || fusion.activation == "relu" ||
         fusion.activation == "leaky_relu" || fusion.activation == "clip" ||
         fusion.activation == "hard_sigmoid";
}

}  // namespace

std::optional<IntegerTail> take_tail(const OpContext& context, const ByteParams& source) {
  IntegerTail tail;
  const at::Tensor scales = context.constant(LayerNode::kWScale);
  if (!scales.defined() || scales.dim() > 1) return std::nullopt;
  if (context.has_input(LayerNode::kOutScale)) {
    tail.out = take_params(context, LayerNode::kOutScale, LayerNode::kOutZero);
    if (!tail.out) return std::nullopt;
  } else {
    const auto to = static_cast<DType>(context.node.get_int("to", 1));
    tail.float_type = to == DType::Float16    ? at::kHalf
                      : to == DType::BFloat16 ? at::kBFloat16
                                              : at::kFloat;
  }
  if (context.has_input(LayerNode::kResidual)) {
    tail.residual = take_params(context, LayerNode::kResidualScale, LayerNode::kResidualZero);
    if (!tail.residual) return std::nullopt;
  }
  if (context.has_input(LayerNode::kMiddleScale)) {
    tail.middle = take_params(context, LayerNode::kMiddleScale, LayerNode::kMiddleZero);
    if (!tail.middle || !tail.out || !tail.residual) return std::nullopt;
    tail.residual_first = context.node.get_int("residual_first", 0) != 0;
    tail.sum = Fusion::activation_of(context.node, "sum_");
  }
  tail.fusion = Fusion::activation_of(context.node);
  const at::Tensor wide = context.take_constant(LayerNode::kWScale).to(at::kFloat).contiguous();
  for (std::int64_t i = 0; i < wide.numel(); ++i) {
    tail.sum_scales.push_back(wide.data_ptr<float>()[i] * source.scale);
  }
  return tail;
}

IntegerTail until_middle(IntegerTail tail) {
  tail.out = tail.middle;
  tail.residual.reset();
  tail.middle.reset();
  return tail;
}

dnnl::memory::data_type dnnl_type(const IntegerTail& tail, TailForm form) {
  return dnnl_type(form == TailForm::Open ? at::kFloat : tail.type());
}

at::Tensor close_tail(const IntegerTail& tail, at::Tensor floats, const at::Tensor& residual) {
  if (tail.residual) {
    floats += (residual.to(at::kFloat) - tail.residual->zero) * tail.residual->scale;
  }
  floats = apply(tail.fusion, std::move(floats), {});
  if (!tail.out) return floats;
  const at::Tensor zero = at::scalar_tensor(tail.out->zero, at::kInt);
  return to_integers(at::round(floats / tail.out->scale), zero, tail.out->type);
}

dnnl::primitive_attr integer_attributes(const IntegerTail& tail, int axis, TailForm form) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (form == TailForm::Open) {
    attributes.set_output_scales(tail.sum_scales.size() == 1 ? 0 : 1 << axis, tail.sum_scales);
    return attributes;
  }
  const float step = tail.out ? tail.out->scale : 1.0F;
  const bool divided = works_on_quotients(tail.fusion);
  std::vector<float> scales = tail.sum_scales;
  if (divided) {
    for (float& each : scales) each /= step;
  }
  attributes.set_output_scales(scales.size() == 1 ? 0 : 1 << axis, scales);
  dnnl::post_ops ops;
  if (tail.residual) {
    ops.append_sum(divided ? tail.residual->scale / step : tail.residual->scale,
                   tail.residual->zero, dnnl_type(tail.residual->type));
  }
  const bool saturates = tail.out && saturates_alike(tail.fusion, *tail.out);
  if (!tail.fusion.activation.empty() && !saturates && !append_scaled(ops, tail.fusion, step)) {
    append_activation(ops, tail.fusion);
    if (tail.out) ops.append_eltwise(1.0F, algorithm::eltwise_linear, 1.0F / step, 0.0F);
  }
  if (tail.out && tail.out->zero != 0) {
    if (form == TailForm::RoundsFirst) {
      ops.append_eltwise(1.0F, algorithm::eltwise_round, 0.0F, 0.0F);
    }
    attributes.set_zero_points(DNNL_ARG_DST, 0, {tail.out->zero});
  }
  attributes.set_post_ops(ops);
  return attributes;
}

dnnl::memory IntegerWeights::as(const dnnl::memory::desc& wanted) {
  if (packed_ && packed_.get_desc() == wanted) return packed_;
  packed_ = reordered(plain_, desc_, wanted);
  release_pages({static_cast<const std::byte*>(plain_.data_ptr()), plain_.nbytes()});
  return packed_;
}

std::optional<SignedWeights> take_weights(const OpContext& context, std::size_t weight,
                                          std::size_t zero, std::int64_t axis) {
  const at::Tensor data = context.constant(weight);
  const at::Tensor origin = context.constant(zero);
  if (!data.defined() || (context.has_input(zero) && !origin.defined()) || data.dim() <= axis) {
    return std::nullopt;
  }
  const bool is_signed = data.scalar_type() == at::kChar;
  if (!is_signed && data.scalar_type() != at::kByte) return std::nullopt;
  SignedWeights result;
  if (origin.defined() && origin.numel() > 0) {
    const at::Tensor wide = origin.to(at::kInt).reshape(-1);
    if (!at::all(wide == wide[0]).item<bool>()) return std::nullopt;
    result.zero = wide[0].item<std::int32_t>();
  }
  if (!is_signed) result.zero -= 128;
  context.take_constant(weight);
  if (origin.defined()) context.take_constant(zero);
  result.data = is_signed ? data.contiguous() : at::bitwise_xor(data, 0x80).view(at::kChar);
  result.sums = channel_sums(result.data, axis, result.zero);
  // They are read again when they are packed, one layer at a time.
  release_pages({static_cast<const std::byte*>(result.data.data_ptr()), result.data.nbytes()});
  return result;
}

at::Tensor sums_bias(const at::Tensor& bias, const std::vector<float>& sum_scales,
                     const std::vector<std::int64_t>& weight_sums, std::int64_t source_zero) {
  if (!bias.defined() && source_zero == 0) return {};
  const auto channels = static_cast<std::int64_t>(weight_sums.size());
  const bool whole = !bias.defined() || bias.scalar_type() == at::kInt;
  at::Tensor wide = at::zeros({channels}, at::kDouble);
  if (bias.defined()) wide += bias.to(at::kDouble).reshape(-1);
  auto* data = wide.data_ptr<double>();
  for (std::size_t i = 0; i < weight_sums.size(); ++i) {
    if (!whole) data[i] /= static_cast<double>(sum_scales[sum_scales.size() == 1 ? 0 : i]);
    data[i] -= static_cast<double>(source_zero * weight_sums[i]);
  }
  constexpr double kMaxInt = 2147483647.0;
  const bool fits = whole && at::all(at::abs(wide) <= kMaxInt).item<bool>();
  return wide.to(fits ? at::kInt : at::kFloat);
}

at::Tensor integer_destination(Call& call, const IntegerTail& tail, at::IntArrayRef shape,
                               at::MemoryFormat format) {
  if (!tail.residual) return new_tensor(shape, tail.type(), format);
  const at::Tensor& residual = call.in(LayerNode::kResidual);
  if (residual.sizes() != shape) {
    fail(ErrorKind::BadData, "the residual has shape {}, but the result {}",
         to_string(residual.sizes().vec()), to_string(shape.vec()));
  }
  if (call.dies(LayerNode::kResidual) && residual.is_contiguous(format))
    return residual.view(tail.type());
  at::Tensor copy = new_tensor(shape, residual.scalar_type(), format);
  copy.copy_(residual);
  return copy.view(tail.type());
}

}  // namespace quench::exec
