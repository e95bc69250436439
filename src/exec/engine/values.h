// SPDX-License-Identifier: Apache-2.0
// What is inside the values that sessions hand out.
#pragma once

#include "exec/engine/torch.h"
#include "quench/session.h"

namespace quench::exec {

inline const at::Tensor& tensor_of(const EngineValue& value) {
  return *static_cast<const at::Tensor*>(value.body().get());
}

}  // namespace quench::exec
