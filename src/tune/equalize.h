// SPDX-License-Identifier: Apache-2.0
// Cross-layer equalisation: channels that differ much in size share one scale badly, so their
// scales are moved from the values between layers into the weights around them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "quench/plan.h"
#include "quench/session.h"

namespace quench::tune {

/// Values whose channels were divided by the same factors.
struct ScaledValues {
  std::vector<std::string> values;
  std::vector<double> scales;  ///< by channel
};

/// What `equalize` did.
struct Equalized {
  std::size_t gates = 0;  ///< that read one of those values
  std::vector<ScaledValues> scaled;
  std::vector<std::string> float_nodes;  ///< nodes added that must stay in float
};

/// Scales channels of the prepared `model` in place; what it computes stays the same but for
/// rounding (behind a Clip(0, bound): for inputs like the samples). Where weights have one per
/// channel, scales weigh the error of activations against that of weights; where they have one
/// scale, weights of neighbouring layers get equal ranges (Nagel et al., 2019). Its nodes are no
/// longer those of the plan.
Equalized equalize(Model& model, const QuantPlan& plan, std::span<const TensorMap> batches,
                   const Context& context);

/// Whether channels could be scaled across a gate (HardSigmoid, Sigmoid, that of a HardSwish)
/// somewhere.
bool has_gates(Model model);

}  // namespace quench::tune
