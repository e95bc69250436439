// SPDX-License-Identifier: Apache-2.0
// Rows times a constant matrix, with bias, residual and activation in one primitive.
#include "exec/engine/onednn/linear.h"

namespace quench::exec {
namespace {

using dnnl::memory;
constexpr auto kF32 = memory::data_type::f32;

}  // namespace

Plan make_matmul_plan(const memory::desc& src, const memory::desc& weights,
                      const memory::desc& bias, const memory::desc& dst, const Fusion& fusion,
                      ResidualForm form, PackedWeights* constant) {
  const auto attributes = attributes_for(fusion, form, dst);
  const dnnl::matmul::desc desc = bias.is_zero() ? dnnl::matmul::desc(src, weights, dst)
                                                 : dnnl::matmul::desc(src, weights, bias, dst);
  std::int64_t work = 2 * src.dims().back();
  for (const std::int64_t size : dst.dims()) work *= size;
  const ThreadScope threads(work);
  dnnl::matmul::primitive_desc pd(desc, attributes, dnnl_engine());
  Plan plan;
  plan.primitive = make_primitive<dnnl::matmul>(pd);
  plan.src = placeholder(pd.src_desc());
  plan.weights =
      constant != nullptr ? constant->as(pd.weights_desc()) : placeholder(pd.weights_desc());
  plan.args = {{DNNL_ARG_SRC, plan.src}, {DNNL_ARG_WEIGHTS, plan.weights}};
  plan.bind(pd, fusion, form);
  return plan;
}

FastLinear::FastLinear(const at::Tensor& weight, const at::Tensor& bias, Fusion fusion)
    : fusion_(std::move(fusion)), depth_(weight.size(0)), width_(weight.size(1)) {
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
  ResidualForm form = ResidualForm::Separate;
  const at::Tensor dst = destination(call, fusion_, at::MemoryFormat::Contiguous, shape, form);
  multiply(src, dst, call.in(FloatLayerNode::kResidual), form);
  call.set(0, dst);
}

void FastLinear::multiply(const at::Tensor& rows, const at::Tensor& dst, const at::Tensor& residual,
                          ResidualForm form) {
  if (dst.numel() == 0) return;
  const std::int64_t count = rows.numel() / depth_;
  Plan& plan = plans_.get({count, form == ResidualForm::InDestination ? 1 : 0},
                          [&] { return plan_for(count, form); });
  point(plan.src, rows);
  point(plan.dst, dst);
  at::Tensor dense;
  if (plan.residual) {
    dense = residual.contiguous();
    point(plan.residual, dense);
  }
  plan.execute();
}

Plan FastLinear::plan_for(std::int64_t rows, ResidualForm form) {
  using Tag = memory::format_tag;
  memory::desc bias;
  if (bias_.defined()) bias = memory::desc({1, width_}, kF32, Tag::ab);
  Plan plan = make_matmul_plan(
      memory::desc({rows, depth_}, kF32, Tag::ab), memory::desc({depth_, width_}, kF32, Tag::any),
      bias, memory::desc({rows, width_}, kF32, Tag::ab), fusion_, form, &weights_);
  if (bias_.defined()) plan.args[DNNL_ARG_BIAS] = memory(bias, dnnl_engine(), bias_.data_ptr());
  return plan;
}

}  // namespace quench::exec
