// SPDX-License-Identifier: Apache-2.0
// Matrix products by libtorch.
#include "exec/engine/kernels/common.h"
#include "exec/engine/kernels/reference.h"

namespace quench::exec {
namespace {

at::Tensor det(const at::Tensor& x) { return at::det(x); }

/// libtorch's einsum knows letters only, without the spaces ONNX allows.
Kernel make_einsum(const OpContext& context) {
  std::string equation = context.node.get_string("equation", "");
  std::erase(equation, ' ');
  if (equation.empty()) return refuse("the equation is missing");
  return [equation](Call& call) {
    std::vector<at::Tensor> operands;
    for (std::size_t i = 0; i < call.num_in(); ++i) operands.push_back(call.in(i));
    call.set(0, at::einsum(equation, operands));
  };
}

at::Tensor scaled(const at::Tensor& x, float factor) {
  return factor == 1.0F ? x : at::mul(x, factor).to(x.scalar_type());
}

}  // namespace

Kernel make_reference_matmul(const OpContext&) {
  return [](Call& call) { call.set(0, at::matmul(call.in(0), call.in(1))); };
}

Kernel make_reference_gemm(const OpContext& context) {
  const float alpha = context.node.get_float("alpha", 1.0F);
  const float beta = context.node.get_float("beta", 1.0F);
  const bool trans_a = context.node.get_int("transA", 0) != 0;
  const bool trans_b = context.node.get_int("transB", 0) != 0;
  return [=](Call& call) {
    const at::Tensor a = trans_a ? call.in(0).t() : call.in(0);
    const at::Tensor b = trans_b ? call.in(1).t() : call.in(1);
    const at::Tensor product = scaled(at::mm(a, b), alpha);
    call.set(0, call.has(2) ? product + scaled(call.in(2), beta) : product);
  };
}

KernelInfo kernel_Einsum() { return {.since = 12, .make = make_einsum}; }
KernelInfo kernel_Det() { return unary<det>(11); }

}  // namespace quench::exec
