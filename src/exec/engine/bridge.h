// SPDX-License-Identifier: Apache-2.0
// Between our tensors and libtorch's, without copies.
#pragma once

#include "exec/engine/torch.h"
#include "quench/tensor.h"

namespace quench::exec {

/// The libtorch type that holds an element type, or nothing where there is none. For uint16 that is
/// a wider one: only the nodes that `type_refusal` lets pass know how to keep within it.
std::optional<at::ScalarType> scalar_type(DType dtype);
DType dtype_of(at::ScalarType type);

/// A libtorch tensor over the same bytes, but for uint16. Throws Error(Unsupported) for types it
/// does not know.
at::Tensor to_torch(const Tensor& tensor);
/// A tensor over the same bytes, in row-major order.
Tensor from_torch(const at::Tensor& tensor);

}  // namespace quench::exec
