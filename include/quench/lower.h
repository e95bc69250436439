// SPDX-License-Identifier: Apache-2.0
// From a plan with its scales to a model that a runtime runs on integers.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "quench/plan.h"

namespace quench {

/// A layer whose weights got wider steps.
struct CoarserLayer {
  std::string node;
  std::int64_t changed = 0;   ///< scales that grew
  std::int64_t channels = 0;  ///< scales in all
  double factor = 1;          ///< the most that a step grew by
};

/// For plans with isa "avx2" or "avx512", in place: widens the steps of weights, only in layers and
/// channels that need it, until no two neighbouring products can leave 16 bits, whatever the
/// activations are. Returns the layers that it changed; doing it twice changes nothing.
std::vector<CoarserLayer> avoid_saturation(const Model& model, const QuantPlan& plan,
                                           QuantSolution& solution);

/// Adjusts scales to what the target's kernels need, in place; doing it twice changes nothing:
/// scales stay inside the bounds of activations that are to be absorbed, weight scales grow where
/// the bias would leave int32, then `avoid_saturation`, whose answer it returns.
std::vector<CoarserLayer> legalize(const Model& model, const QuantPlan& plan,
                                   QuantSolution& solution);

/// The version of ONNX's operators that a plan needs to be written.
std::int64_t needed_opset(const QuantPlan& plan);

/// Turns a plan and its scales into QuantizeLinear/DequantizeLinear nodes that the target fuses.
/// Raises the opset where the result needs it. Legalises the scales first.
Model insert_qdq(const Model& model, const QuantPlan& plan, const QuantSolution& solution);

/// The same computation with QLinearConv, QLinearMatMul and their like, where they exist; the rest
/// keeps its Q/DQ nodes.
Model to_qoperator(const Model& qdq);

/// What `pad_channels` did.
struct PaddedChannels {
  std::int64_t layers = 0;                     ///< depthwise convolutions
  std::int64_t bytes = 0;                      ///< by which the constants grew
  std::map<std::string, std::int64_t> values;  ///< by name: the channels that there were
};
/// Adds channels of zeros to depthwise convolutions and the layers around them, where these can
/// take them, until there is a multiple of `multiple`. Nothing else that is computed changes.
PaddedChannels pad_channels(Model& qdq, std::int64_t multiple);

/// Raises the version of ONNX's own operators, rewriting every node whose meaning or form changes
/// on the way. Throws Error(Unsupported) that names a node that cannot be lifted.
void lift_opset(Model& model, std::int64_t opset);

}  // namespace quench
