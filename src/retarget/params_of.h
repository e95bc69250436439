// SPDX-License-Identifier: Apache-2.0
// The parameters that QuantizeLinear and DequantizeLinear nodes hold, as ours.
#pragma once

#include <optional>

#include "quench/model.h"
#include "quench/quant.h"

namespace quench::retargeting {

/// Those of a node whose scales and zero points are constants of one number, or of one for each
/// index of an axis; nothing where they are computed, lie in blocks, or are no positive numbers.
std::optional<QuantParams> params_of(const Graph& graph, const Node& node);
/// A spec whose `dtype()` this is; nothing for types that hold no quantised numbers.
std::optional<QuantSpec> spec_of(DType dtype);
/// Same scales and zero points, and same type of integers.
bool same_integers(const QuantParams& a, const QuantParams& b);
/// The numbers between the lowest and the highest step, of all channels.
Range range_of(const QuantParams& params);

}  // namespace quench::retargeting
