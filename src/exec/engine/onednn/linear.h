// SPDX-License-Identifier: Apache-2.0
// Rows times a constant matrix.
#pragma once

#include "exec/engine/onednn/plan.h"

namespace quench::exec {

/// A matrix product with its tail; `constant` holds the weights, or is null when each call brings
/// its own.
Plan make_matmul_plan(const dnnl::memory::desc& src, const dnnl::memory::desc& weights,
                      const dnnl::memory::desc& bias, const dnnl::memory::desc& dst,
                      const Fusion& fusion, ResidualForm form, PackedWeights* constant);

/// Every leading axis of the source is a row.
class FastLinear {
 public:
  /// `weight` is [K, N], in any strides; `bias` is undefined or holds N elements.
  FastLinear(const at::Tensor& weight, const at::Tensor& bias, Fusion fusion);

  /// Input 0 times the weights into output 0; the residual, if the tail has one, is input 3.
  void operator()(Call& call);
  /// `rows` (dense, K in its last axis) times the weights, into `dst`.
  void multiply(const at::Tensor& rows, const at::Tensor& dst, const at::Tensor& residual,
                ResidualForm form);

  std::int64_t depth() const noexcept { return depth_; }

 private:
  Plan plan_for(std::int64_t rows, ResidualForm form);

  Fusion fusion_;
  std::int64_t depth_;
  std::int64_t width_;
  PackedWeights weights_;
  at::Tensor bias_;
  PlanCache plans_;
};

}  // namespace quench::exec
