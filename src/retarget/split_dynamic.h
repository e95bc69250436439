// SPDX-License-Identifier: Apache-2.0
// Layers whose input is quantised while the model runs, as float layers with quantised weights.
#pragma once

#include "quench/model.h"

namespace quench::retargeting {

/// DynamicQuantizeLinear with MatMulInteger or ConvInteger, Cast and the scales behind it becomes
/// MatMul or Conv of a dequantised weight; DynamicQuantizeMatMul likewise. Gives how many there
/// were.
std::size_t split_dynamic(Model& model);

}  // namespace quench::retargeting
