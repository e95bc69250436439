// SPDX-License-Identifier: Apache-2.0
// What a fused node does after its product: its activation.
#pragma once

#include "exec/engine/kernel.h"
#include "exec/engine/onednn/onednn.h"
#include "exec/fused.h"

namespace quench::exec {

/// The attributes of a primitive with this activation, if any; the scratchpad is the caller's.
dnnl::primitive_attr attributes_for(const FusedActivation& activation = {});
/// The post-operations of an activation, which must be one.
void append_activation(dnnl::post_ops& ops, const FusedActivation& activation);

/// The same by libtorch, for kernels that oneDNN does not run.
at::Tensor apply(const FusedActivation& activation, at::Tensor result);
/// A kernel followed by an activation.
Kernel with_activation(Kernel kernel, const FusedActivation& activation);

}  // namespace quench::exec
