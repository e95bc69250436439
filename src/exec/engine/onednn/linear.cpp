// SPDX-License-Identifier: Apache-2.0
// Rows times a constant matrix, with bias and activation in one primitive.
#include "exec/engine/onednn/linear.h"

namespace quench::exec {
namespace {

using dnnl::memory;
constexpr auto kF32 = memory::data_type::f32;

}  // namespace

Plan make_matmul_plan(const memory::desc& src, const memory::desc& weights,
                      const memory::desc& bias, const memory::desc& dst,
                      const FusedActivation& activation, PackedWeights* constant) {
  const auto attributes = attributes_for(activation);
  const dnnl::matmul::desc desc = bias.is_zero() ? dnnl::matmul::desc(src, weights, dst)
                                                 : dnnl::matmul::desc(src, weights, bias, dst);
  std::int64_t work = 2 * src.dims().back();
  for (const std::int64_t size : dst.dims()) work *= size;
  const ThreadScope threads(work);
  dnnl::matmul::primitive_desc pd(desc, attributes, dnnl_engine());
  Plan plan = plan_of<dnnl::matmul>(pd);
  plan.set_weights(constant != nullptr ? constant->as(pd.weights_desc())
                                       : placeholder(pd.weights_desc()));
  return plan;
}

FastLinear::FastLinear(const at::Tensor& weight, const at::Tensor& bias, FusedActivation activation)
    : activation_(std::move(activation)), depth_(weight.size(0)), width_(weight.size(1)) {
  weights_ = PackedWeights(weight, describe(weight));
  if (bias.defined()) bias_ = bias.to(at::kFloat).reshape({1, width_}).contiguous();
}

void FastLinear::operator()(Call& call) {
  const at::Tensor& given = call.in(FloatLayerNode::kX);
  if (given.dim() < 1 || given.size(-1) != depth_) {
    fail(ErrorKind::BadData, "the input has shape {}, but the weights want {} in its last axis",
         to_string(given.sizes().vec()), depth_);
  }
  const at::Tensor src = given.contiguous();
  auto shape = src.sizes().vec();
  shape.back() = width_;
  const at::Tensor dst = at::empty(shape, at::TensorOptions(at::kFloat));
  multiply(src, dst);
  call.set(0, dst);
}

void FastLinear::multiply(const at::Tensor& rows, const at::Tensor& dst) {
  if (dst.numel() == 0) return;
  const std::int64_t count = rows.numel() / depth_;
  Plan& plan = plans_.get({count}, [&] { return plan_for(count); });
  point(plan.src, rows);
  point(plan.dst, dst);
  plan.execute();
}

Plan FastLinear::plan_for(std::int64_t rows) {
  using Tag = memory::format_tag;
  memory::desc bias;
  if (bias_.defined()) bias = memory::desc({1, width_}, kF32, Tag::ab);
  Plan plan = make_matmul_plan(memory::desc({rows, depth_}, kF32, Tag::ab),
                               memory::desc({depth_, width_}, kF32, Tag::any), bias,
                               memory::desc({rows, width_}, kF32, Tag::ab), activation_, &weights_);
  plan.set_bias(bias, bias_);
  return plan;
}

}  // namespace quench::exec
