// SPDX-License-Identifier: Apache-2.0
// The heavy operators on oneDNN. Each answers nothing where oneDNN has no good form: then the
// plain kernel runs.
#pragma once

#include <optional>

#include "exec/engine/kernel.h"

namespace quench::exec {

std::optional<Kernel> make_fast_conv(const OpContext& context);
std::optional<Kernel> make_fast_conv_transpose(const OpContext& context);
std::optional<Kernel> make_fast_matmul(const OpContext& context);
std::optional<Kernel> make_fast_gemm(const OpContext& context);
/// Products of two tensors whose leading axes broadcast.
std::function<at::Tensor(const at::Tensor&, const at::Tensor&)> make_batched_product();

}  // namespace quench::exec
