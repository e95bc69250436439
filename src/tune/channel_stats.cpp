// SPDX-License-Identifier: Apache-2.0
// Reads values batch by batch and adds up their channels.
#include "tune/channel_stats.h"

#include <algorithm>
#include <cmath>

namespace quench::tune {
namespace {

/// Sums and extremes on the way.
struct Sums {
  ChannelStats stats;
  double count = 0;  ///< elements a channel has had
};

void add(const Tensor& tensor, Sums& sums) {
  if (tensor.rank() < 2 || tensor.size() == 0) return;
  const auto channels = static_cast<std::size_t>(tensor.shape()[1]);
  const auto batch = static_cast<std::size_t>(tensor.shape()[0]);
  const std::size_t inner = static_cast<std::size_t>(tensor.size()) / (batch * channels);
  sums.stats.abs_max.resize(channels);
  sums.stats.mean.resize(channels);
  sums.stats.mean_square.resize(channels);
  const auto data = tensor.data<float>();
  for (std::size_t row = 0; row < batch * channels; ++row) {
    float most = 0;
    double sum = 0;
    double squares = 0;
    for (const float value : data.subspan(row * inner, inner)) {
      if (!std::isfinite(value)) continue;
      most = std::max(most, std::abs(value));
      sum += static_cast<double>(value);
      squares += static_cast<double>(value) * static_cast<double>(value);
    }
    double& abs_max = sums.stats.abs_max[row % channels];
    abs_max = std::max(abs_max, static_cast<double>(most));
    sums.stats.mean[row % channels] += sum;
    sums.stats.mean_square[row % channels] += squares;
  }
  sums.count += static_cast<double>(batch * inner);
}

}  // namespace

std::map<std::string, ChannelStats> channel_stats(const Model& model,
                                                  std::vector<std::string> values,
                                                  std::span<const TensorMap> batches,
                                                  const Context& context) {
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
  SessionOptions options;
  options.taps = values;
  Session session(model, options, context);
  std::map<std::string, Sums> sums;
  for (const TensorMap& batch : batches) {
    context.check_cancelled();
    for (const auto& [name, tensor] : session.run(batch, values)) {
      if (tensor.dtype() == DType::Float32) add(tensor, sums[name]);
    }
  }
  std::map<std::string, ChannelStats> result;
  for (auto& [name, each] : sums) {
    if (each.count == 0) continue;
    for (double& mean : each.stats.mean) mean /= each.count;
    for (double& square : each.stats.mean_square) square /= each.count;
    result.emplace(name, std::move(each.stats));
  }
  return result;
}

}  // namespace quench::tune
