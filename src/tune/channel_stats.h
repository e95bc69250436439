// SPDX-License-Identifier: Apache-2.0
// What the channels of values come to over some samples.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "quench/session.h"

namespace quench::tune {

/// One value, channel by channel (axis 1).
struct ChannelStats {
  std::vector<double> abs_max;
  std::vector<double> mean_square;
  double samples = 0;
};

/// Runs the model on each batch of inputs. Values with fewer than two dimensions are left out.
std::map<std::string, ChannelStats> channel_stats(const Model& model,
                                                  const std::vector<std::string>& values,
                                                  std::span<const TensorMap> batches,
                                                  const Context& context);

}  // namespace quench::tune
