// SPDX-License-Identifier: Apache-2.0
// What a fused node does after its product: residual and activation.
#pragma once

#include "exec/engine/kernel.h"
#include "exec/engine/onednn/onednn.h"
#include "exec/fused.h"

namespace quench::exec {

/// When the residual is added.
enum class Residual { None, BeforeActivation, AfterActivation };

/// The tail of a fused node, read from its attributes; a plain node has an empty one.
struct Fusion {
  std::string activation;
  float alpha = 0;
  float beta = 0;
  Residual residual = Residual::None;

  static Fusion of(const Node& node);
  /// Of a node whose residual is no FloatLayerNode's: the activation alone.
  static Fusion activation_of(const Node& node, std::string_view prefix = "");
  bool empty() const { return activation.empty() && residual == Residual::None; }
};

/// How the residual reaches the primitive: in the destination itself, or as one more input.
enum class ResidualForm { InDestination, Separate };

/// The attributes of a primitive with this tail; the scratchpad is the caller's.
dnnl::primitive_attr attributes_for(const Fusion& fusion, ResidualForm form,
                                    const dnnl::memory::desc& dst);
/// The activation of a tail, which must have one.
void append_activation(dnnl::post_ops& ops, const Fusion& fusion);
/// The argument that holds a separate residual.
int residual_argument(const Fusion& fusion);

/// The same tail by libtorch, for kernels that oneDNN does not run.
at::Tensor apply(const Fusion& fusion, at::Tensor result, const at::Tensor& residual);
/// The kernel of a FloatLayerNode followed by its tail.
Kernel with_tail(Kernel kernel, const Fusion& fusion);

}  // namespace quench::exec
