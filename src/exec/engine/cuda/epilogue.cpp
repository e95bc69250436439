// SPDX-License-Identifier: Apache-2.0
// Launches the kernels of epilogue.cu.
#include "exec/engine/cuda/epilogue.h"

#include <algorithm>
#include <limits>

#include "exec/engine/cuda/kernels.h"
#include "exec/fused.h"

namespace quench::exec {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMostBlocks = 1 << 20;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Bounds {
  float low = -kInfinity;
  float high = kInfinity;
};

/// What the activation is as a pair of bounds; nothing where it is more.
std::optional<Bounds> bounds_of(const Fusion& fusion) {
  if (fusion.residual == Residual::AfterActivation) return std::nullopt;
  if (fusion.activation.empty()) return Bounds{};
  if (fusion.activation == "relu") return Bounds{.low = 0};
  if (fusion.activation == "clip") return Bounds{.low = fusion.alpha, .high = fusion.beta};
  return std::nullopt;
}

bool suits(const Call& call) {
  const at::Tensor& x = call.in(FloatLayerNode::kX);
  return x.is_cuda() && c10::InferenceMode::is_enabled() &&
         (x.scalar_type() == at::kFloat || x.scalar_type() == at::kHalf);
}

void finish(at::Tensor& y, const at::Tensor& bias, const at::Tensor& residual,
            const Bounds& bounds) {
  if (y.numel() == 0) return;
  if (!y.is_non_overlapping_and_dense()) y = y.contiguous();
  at::Tensor added = residual;
  constexpr std::uintptr_t kAligned = 16;
  const bool as_it_is = added.defined() && added.strides() == y.strides() &&
                        reinterpret_cast<std::uintptr_t>(added.data_ptr()) % kAligned == 0;
  if (added.defined() && !as_it_is) added = at::empty_like(y).copy_(residual);
  const std::int64_t vectors = (y.numel() + 3) / 4;
  const bool half = y.scalar_type() == at::kHalf;
  cuda_kernels("epilogue", y.device().index())
      ->launch(
          half ? "finish_half" : "finish_float",
          {.x = std::min((vectors + kThreads - 1) / kThreads, kMostBlocks), .threads = kThreads},
          y.data_ptr(), bias.defined() ? bias.data_ptr() : nullptr,
          added.defined() ? added.data_ptr() : nullptr, y.numel(), y.size(1), y.stride(1),
          bounds.low, bounds.high);
}

}  // namespace

Kernel with_gpu_epilogue(Kernel plain, Kernel whole, const Fusion& fusion) {
  const auto bounds = bounds_of(fusion);
  if (!plain.run || !bounds) return whole;
  whole.run = [plain = std::move(plain.run), all = std::move(whole.run), bounds = *bounds,
               adds = fusion.residual != Residual::None](Call& call) {
    if (!suits(call)) return all(call);
    std::vector<at::Tensor> slots = {call.in(FloatLayerNode::kX), call.in(FloatLayerNode::kW),
                                     at::Tensor()};
    const std::vector<int> in = {0, 1, -1};
    const std::vector<int> out = {2};
    Call inner(slots, in, out);
    plain(inner);
    finish(slots[2], call.in(FloatLayerNode::kBias),
           adds ? call.in(FloatLayerNode::kResidual) : at::Tensor(), bounds);
    call.set(0, slots[2]);
  };
  return whole;
}

}  // namespace quench::exec
