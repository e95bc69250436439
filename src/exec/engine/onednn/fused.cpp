// SPDX-License-Identifier: Apache-2.0
// The heavy operators, plain and with the tails that fusion gives them.
#include "exec/engine/cuda/epilogue.h"
#include "exec/engine/kernels/reference.h"
#include "exec/engine/onednn/fast.h"
#include "exec/engine/onednn/fusion.h"

namespace quench::exec {
namespace {

/// The fast kernel, or the plain one followed by the node's tail.
template <std::optional<Kernel> (*kFast)(const OpContext&), Kernel (*kPlain)(const OpContext&)>
Kernel fused(const OpContext& context) {
  if (context.fast) {
    if (auto fast = kFast(context)) return *fast;
  }
  return with_tail(kPlain(context), Fusion::of(context.node));
}

/// Likewise, and on a GPU with its tail in one pass.
Kernel fused_conv(const OpContext& context) {
  Kernel whole = fused<make_fast_conv, make_reference_conv>(context);
  if (context.fast) return whole;
  return with_gpu_epilogue(make_reference_conv(context), std::move(whole),
                           Fusion::of(context.node));
}

/// A product of two matrices plus the bias that fusion has given it.
Kernel plain_matmul(const OpContext& context) {
  if (!context.has_input(FloatLayerNode::kBias)) return make_reference_matmul(context);
  return [](Call& call) {
    call.set(0, at::matmul(call.in(FloatLayerNode::kX), call.in(FloatLayerNode::kW)) +
                    call.in(FloatLayerNode::kBias));
  };
}

}  // namespace

KernelInfo kernel_Conv() { return {.make = fused_conv}; }
KernelInfo kernel_ConvTranspose() {
  return {.make = fused<make_fast_conv_transpose, make_reference_conv_transpose>};
}
KernelInfo kernel_MatMul() { return {.make = fused<make_fast_matmul, plain_matmul>}; }
KernelInfo kernel_Gemm() { return {.make = fused<make_fast_gemm, make_reference_gemm>}; }

// Fused nodes differ by their attributes only.
KernelInfo kernel_FusedConv() { return kernel_Conv(); }
KernelInfo kernel_FusedConvTranspose() { return kernel_ConvTranspose(); }
KernelInfo kernel_FusedMatMul() { return kernel_MatMul(); }
KernelInfo kernel_FusedGemm() { return kernel_Gemm(); }

}  // namespace quench::exec
