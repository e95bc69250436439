// SPDX-License-Identifier: Apache-2.0
// A primitive with its memory objects for one set of shapes, and the few that are kept.
#pragma once

#include <memory>
#include <vector>

#include "exec/engine/onednn/fusion.h"

namespace quench::exec {

/// A primitive ready to run. Memory objects are created once and pointed at tensors for each run.
struct Plan {
  std::vector<std::int64_t> key;
  dnnl::primitive primitive;
  DnnlArgs args;
  dnnl::memory src;
  dnnl::memory weights;
  dnnl::memory dst;
  dnnl::memory residual;
  dnnl::memory scratch;
  std::vector<std::int64_t> dst_shape;
  bool open = false;  ///< the primitive leaves the tail of its layer to the caller

  /// Adds destination, residual and scratchpad from the primitive's description.
  template <typename PrimitiveDesc>
  void bind(const PrimitiveDesc& pd, const Fusion& fusion, ResidualForm form) {
    dst = placeholder(pd.dst_desc());
    args[DNNL_ARG_DST] = dst;
    scratch = placeholder(pd.scratchpad_desc());
    args[DNNL_ARG_SCRATCHPAD] = scratch;
    if (fusion.residual != Residual::None && form == ResidualForm::Separate) {
      residual = placeholder(pd.dst_desc());
      args[residual_argument(fusion)] = residual;
    }
  }
  void execute() {
    scratch.set_data_handle(dnnl_scratch(scratch.get_desc().get_size()));
    primitive.execute(dnnl_stream(), args);
    dnnl_stream().wait();
  }
};

/// The primitive of the first implementation that can be made: oneDNN may describe one and then
/// fail to make it. Its last ones are plain loops, which take everything.
template <typename Primitive>
Primitive make_primitive(typename Primitive::primitive_desc& pd) {
  while (true) {
    try {
      return Primitive(pd);
    } catch (const dnnl::error&) {
      if (!pd.next_impl()) throw;
    }
  }
}

/// The plans of one kernel, newest last. Dynamic shapes must not make it grow without end.
class PlanCache {
 public:
  template <typename Make>
  Plan& get(at::IntArrayRef key, Make make) {
    for (const auto& plan : plans_) {
      if (key == plan->key) return *plan;
    }
    if (plans_.size() >= kMaxPlans) plans_.erase(plans_.begin());
    plans_.push_back(std::make_unique<Plan>(make()));
    plans_.back()->key = key.vec();
    return *plans_.back();
  }

 private:
  static constexpr std::size_t kMaxPlans = 16;
  std::vector<std::unique_ptr<Plan>> plans_;
};

/// Constant weights in the layout that the newest plan asked for.
class PackedWeights {
 public:
  PackedWeights() = default;
  /// `desc` is how oneDNN sees the tensor's bytes.
  PackedWeights(at::Tensor plain, dnnl::memory::desc desc)
      : plain_(std::move(plain)), desc_(std::move(desc)) {}

  /// The weights as `wanted`; the plain ones are freed after the first call.
  dnnl::memory as(const dnnl::memory::desc& wanted);

 private:
  at::Tensor plain_;
  dnnl::memory::desc desc_;
  dnnl::memory packed_;
};

/// A plan with what a layer reads; its destination is for the caller to bind.
template <typename Primitive>
Plan plan_of_layer(typename Primitive::primitive_desc& pd, PackedWeights& weights,
                   const at::Tensor& bias) {
  Plan plan;
  plan.primitive = make_primitive<Primitive>(pd);
  plan.src = placeholder(pd.src_desc());
  plan.weights = weights.as(pd.weights_desc());
  plan.args = {{DNNL_ARG_SRC, plan.src}, {DNNL_ARG_WEIGHTS, plan.weights}};
  if (bias.defined()) {
    plan.args[DNNL_ARG_BIAS] = dnnl::memory(pd.bias_desc(), dnnl_engine(), bias.data_ptr());
  }
  return plan;
}

/// The destination of a fused product: the residual's own memory when nobody reads it again.
at::Tensor destination(Call& call, const Fusion& fusion, at::MemoryFormat format,
                       at::IntArrayRef shape, ResidualForm& form);

}  // namespace quench::exec
