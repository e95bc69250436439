// SPDX-License-Identifier: Apache-2.0
// Between our tensors and libtorch's, without copies.
#pragma once

#include "exec/engine/torch.h"
#include "quench/tensor.h"

namespace quench::exec {

/// The libtorch type of an element type, or nothing where libtorch has none.
std::optional<at::ScalarType> scalar_type(DType dtype);
DType dtype_of(at::ScalarType type);

/// A libtorch tensor over the same bytes. Throws Error(Unsupported) for types it does not know.
at::Tensor to_torch(const Tensor& tensor);
/// A tensor over the same bytes, in row-major order.
Tensor from_torch(const at::Tensor& tensor);

}  // namespace quench::exec
