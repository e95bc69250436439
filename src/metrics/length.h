// SPDX-License-Identifier: Apache-2.0
// Outputs whose length the model decides itself.
#pragma once

#include "quench/tensor.h"

namespace quench::metrics {

/// A decoder in a loop ([N, steps, classes]) stops where its values tell it to: a quantised one may
/// take more or fewer steps. `actual` with the length of `expected`: steps that are missing are
/// zeros, those beyond it are left out. As it is where anything else differs.
Tensor at_length_of(const Tensor& actual, const Tensor& expected);

}  // namespace quench::metrics
