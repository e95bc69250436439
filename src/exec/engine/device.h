// SPDX-License-Identifier: Apache-2.0
// A GPU by way of libtorch: whether there is one, and which tensors lie there.
#pragma once

#include "exec/engine/torch.h"
#include "quench/context.h"
#include "quench/node.h"

namespace quench::exec {

/// Where a program's floating-point values lie between its steps.
struct Placement {
  at::Device device = at::kCPU;
  at::ScalarType number = at::kFloat;  ///< what float32 values are there

  bool away() const noexcept { return device != at::kCPU; }
  /// Integers stay here: they are shapes, axes and indices, which kernels read one by one. So do
  /// scalars, which libtorch takes from either side.
  bool wants(const at::Tensor& tensor) const {
    return tensor.is_floating_point() && tensor.dim() > 0;
  }
  at::Tensor there(const at::Tensor& tensor) const;
  at::Tensor here(const at::Tensor& tensor) const;
};

/// What `Context::device` and `precision` name, ready for use: else an Error that says what is
/// missing.
Placement open_device(const Context& context);

/// Whether the reference kernel of a node is made of libtorch's operators alone, which run
/// anywhere. The others get their tensors on the CPU.
bool runs_anywhere(const Node& node);

}  // namespace quench::exec
