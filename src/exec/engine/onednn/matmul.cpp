// SPDX-License-Identifier: Apache-2.0
// Matrix products, with bias, residual and activation in one primitive.
#include "exec/engine/kernels/common.h"
#include "exec/engine/onednn/fast.h"
#include "exec/engine/onednn/linear.h"

namespace quench::exec {
namespace {

/// Whether oneDNN reads the tensor as it lies: its last two axes dense in either order.
at::Tensor dense_matrices(const at::Tensor& tensor) {
  const bool rows = tensor.stride(-1) == 1 && tensor.stride(-2) >= tensor.size(-1);
  const bool columns = tensor.stride(-2) == 1 && tensor.stride(-1) >= tensor.size(-2);
  return rows || columns ? tensor : tensor.contiguous();
}

/// Two tensors whose leading axes broadcast.
class FastBatched {
 public:
  explicit FastBatched(Fusion fusion) : fusion_(std::move(fusion)) {}

  bool run(Call& call) {
    at::Tensor dst = run(call.in(FloatLayerNode::kX), call.in(FloatLayerNode::kW),
                         call.in(FloatLayerNode::kResidual));
    if (!dst.defined()) return false;
    call.set(0, std::move(dst));
    return true;
  }

  /// Undefined where oneDNN does not take them.
  at::Tensor run(const at::Tensor& a, const at::Tensor& b, const at::Tensor& residual) {
    constexpr std::int64_t kMaxRank = 5;
    const std::int64_t rank = std::max(a.dim(), b.dim());
    if (a.dim() < 2 || b.dim() < 2 || rank > kMaxRank || a.scalar_type() != at::kFloat ||
        b.scalar_type() != at::kFloat || a.numel() == 0 || b.numel() == 0) {
      return {};
    }
    const at::Tensor left = dense_matrices(leading_ones(a, rank));
    const at::Tensor right = dense_matrices(leading_ones(b, rank));
    if (left.size(-1) != right.size(-2)) return {};
    Ints shape = left.sizes().vec();
    for (std::size_t i = 0; i + 2 < shape.size(); ++i) {
      const std::int64_t other = right.size(static_cast<std::int64_t>(i));
      if (shape[i] != other && shape[i] != 1 && other != 1) return {};
      shape[i] = std::max(shape[i], other);
    }
    shape.back() = right.size(-1);
    return execute(left, right, residual, shape);
  }

 private:
  static at::Tensor leading_ones(const at::Tensor& tensor, std::int64_t rank) {
    Ints sizes = tensor.sizes().vec();
    Ints strides = tensor.strides().vec();
    const std::int64_t whole = sizes[0] * strides[0];
    while (static_cast<std::int64_t>(sizes.size()) < rank) {
      sizes.insert(sizes.begin(), 1);
      strides.insert(strides.begin(), std::max<std::int64_t>(whole, 1));
    }
    return tensor.as_strided(sizes, strides);
  }

  at::Tensor execute(const at::Tensor& left, const at::Tensor& right, const at::Tensor& added,
                     const Ints& shape) {
    Ints key = left.sizes().vec();
    for (const at::IntArrayRef part : {left.strides(), right.sizes(), right.strides()}) {
      key.insert(key.end(), part.begin(), part.end());
    }
    at::Tensor dst = at::empty(shape, at::TensorOptions(at::kFloat));
    Plan& plan = plans_.get(key, [&] {
      return make_matmul_plan(describe(left), describe(right), {}, describe(dst), fusion_,
                              ResidualForm::Separate, nullptr);
    });
    point(plan.src, left);
    point(plan.weights, right);
    point(plan.dst, dst);
    at::Tensor residual;
    if (plan.residual) {
      residual = added.contiguous();
      point(plan.residual, residual);
    }
    plan.execute();
    return dst;
  }

  Fusion fusion_;
  PlanCache plans_;
};

bool computes_in_float(const OpContext& context, std::size_t input) {
  const DType dtype = context.input_dtype(input);
  return dtype == DType::Float32 || dtype == DType::Float16 || dtype == DType::BFloat16;
}

Kernel linear(const at::Tensor& weight, const at::Tensor& bias, const Fusion& fusion) {
  auto kernel = std::make_shared<FastLinear>(weight, bias, fusion);
  return Kernel([kernel](Call& call) { (*kernel)(call); });
}

/// A bias that oneDNN can add: a constant with one element, or one a column.
bool fits_columns(const at::Tensor& bias, std::int64_t width) {
  return bias.numel() == 1 || (bias.numel() == width && bias.size(-1) == width);
}

}  // namespace

std::function<at::Tensor(const at::Tensor&, const at::Tensor&)> make_batched_product() {
  return
      [kernel = std::make_shared<FastBatched>(Fusion())](const at::Tensor& a, const at::Tensor& b) {
        at::Tensor dst = kernel->run(a, b, {});
        return dst.defined() ? dst : at::matmul(a, b);
      };
}

std::optional<Kernel> make_fast_matmul(const OpContext& context) {
  if (!computes_in_float(context, 1)) return std::nullopt;
  const Fusion fusion = Fusion::of(context.node);
  const at::Tensor b = context.constant(FloatLayerNode::kW);
  if (b.defined() && b.dim() == 2 && b.numel() > 0) {
    at::Tensor bias = context.constant(FloatLayerNode::kBias);
    if (context.has_input(FloatLayerNode::kBias) && !bias.defined()) return std::nullopt;
    if (bias.defined())
      bias = context.take_constant(FloatLayerNode::kBias)
                 .to(at::kFloat)
                 .reshape(-1)
                 .expand({b.size(1)});
    return linear(context.take_constant(FloatLayerNode::kW).to(at::kFloat).contiguous(), bias,
                  fusion);
  }
  if (context.has_input(FloatLayerNode::kBias)) return std::nullopt;
  auto kernel = std::make_shared<FastBatched>(fusion);
  return Kernel([kernel, fusion](Call& call) {
    if (kernel->run(call)) return;
    call.set(0, apply(fusion, at::matmul(call.in(FloatLayerNode::kX), call.in(FloatLayerNode::kW)),
                      call.in(FloatLayerNode::kResidual)));
  });
}

std::optional<Kernel> make_fast_gemm(const OpContext& context) {
  const Node& node = context.node;
  const bool fits =
      computes_in_float(context, 1) && context.constant(FloatLayerNode::kW).defined() &&
      context.constant(FloatLayerNode::kW).dim() == 2 &&
      context.constant(FloatLayerNode::kW).numel() > 0 && node.get_int("transA", 0) == 0;
  if (!fits) return std::nullopt;
  const bool transposed = node.get_int("transB", 0) != 0;
  const std::int64_t width = context.constant(FloatLayerNode::kW).size(transposed ? 0 : 1);
  at::Tensor bias;
  if (context.has_input(FloatLayerNode::kBias)) {
    if (!context.constant(FloatLayerNode::kBias).defined() ||
        !fits_columns(context.constant(FloatLayerNode::kBias), width)) {
      return std::nullopt;
    }
    bias = context.take_constant(FloatLayerNode::kBias).to(at::kFloat).reshape(-1).expand({width});
    bias = bias * node.get_float("beta", 1.0F);
  }
  at::Tensor weight = context.take_constant(FloatLayerNode::kW).to(at::kFloat);
  const float alpha = node.get_float("alpha", 1.0F);
  if (alpha != 1.0F) weight = weight * alpha;
  return linear(transposed ? weight.t() : weight, bias, Fusion::of(node));
}

}  // namespace quench::exec
