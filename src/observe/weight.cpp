// SPDX-License-Identifier: Apache-2.0
// Ranges of constant weights: the values themselves are at hand, so errors are exact.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/format.h"
#include "base/nearest.h"
#include "base/parallel.h"
#include "quant/cover.h"
#include "quench/statistics.h"

namespace quench {
namespace {

enum class Method { Whole, LeastError, Statistics };

/// Observers that look at the weight itself; the others look at statistics, as of activations.
Method method_of(const std::string& observer) {
  static const std::array<std::pair<std::string_view, Method>, 6> kMethods = {
      {{"", Method::Whole},
       {"abs_max", Method::Whole},
       {"channel_wise_abs_max", Method::Whole},
       {"min_max", Method::Whole},
       {"mse", Method::LeastError},
       {"channel_wise_mse", Method::LeastError}}};
  std::vector<std::string> names;
  for (const auto& [name, method] : kMethods) {
    if (name == observer) return method;
    if (!name.empty()) names.emplace_back(name);
  }
  for (const ObserverInfo& info : all_observers()) {
    if (info.name == observer) return Method::Statistics;
    if (std::ranges::find(names, info.name) == names.end()) names.emplace_back(info.name);
  }
  fail(ErrorKind::Usage, "there is no observer '{}' for weights{}; there are {}", observer,
       did_you_mean(observer, names), fmt::join(names, ", "));
}

/// The range that an observer of activations finds. The rows of a weight with one scale count as
/// samples, of which `avg` takes the mean, as in PaddleSlim.
Range observed(const std::vector<float>& values, std::size_t rows, const std::string& observer,
               const QuantSpec& spec) {
  Statistic statistic;
  const std::span<const float> all(values);
  const std::size_t size = values.size() / rows;
  for (std::size_t i = 0; i < rows; ++i) statistic.add_sample(all.subspan(i * size, size));
  return find_observer(observer).range(statistic, spec);
}

Range whole_range(const std::vector<float>& values, const QuantSpec& spec) {
  float low = 0;
  float high = 0;
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  const auto min = static_cast<double>(low);
  const auto max = static_cast<double>(high);
  if (!spec.symmetric) return {min, max};
  return {-std::max(-min, max), std::max(-min, max)};
}

/// PaddleSlim's search, with the unclipped range among the candidates, then once more finer.
Range least_error(const std::vector<float>& values, const QuantSpec& spec) {
  const Range whole = whole_range(values, spec);
  if (whole.min == whole.max) return whole;
  const quant::Steps steps{static_cast<std::int32_t>(spec.q_min()),
                           static_cast<std::int32_t>(spec.q_max())};
  const quant::FactorSearch factors{.first = 98, .last = 30, .step = 2, .fine = 0.005};
  const double best = quant::best_factor(factors, [&](double factor) {
    const quant::ScaleAndZero params =
        quant::cover({factor * whole.min, factor * whole.max}, steps, spec.symmetric);
    return quant::squared_error(values.data(), static_cast<std::int64_t>(values.size()),
                                quant::loop_params(params, steps));
  });
  return {best * whole.min, best * whole.max};
}

/// Channels that are gathered together: what lies side by side is read once.
constexpr std::int64_t kTogether = 16;

/// The values of each channel from `first` on, one after the other.
void gather(std::span<const float> weight, std::int64_t channels, std::int64_t inner,
            std::int64_t first, std::span<std::vector<float>> values) {
  for (std::vector<float>& each : values) each.clear();
  const auto total = static_cast<std::int64_t>(weight.size());
  for (std::int64_t row = first * inner; row < total; row += channels * inner) {
    auto at = weight.begin() + row;
    for (std::vector<float>& each : values) {
      each.insert(each.end(), at, at + inner);
      at += inner;
    }
  }
}

}  // namespace

std::vector<Range> weight_ranges(const Tensor& weight, const QuantSpec& spec, int threads) {
  const Method method = method_of(spec.observer);
  QuantSpec whole = spec;
  whole.axis = -1;
  whole.observer.clear();
  if (spec.axis >= weight.rank()) {
    fail(ErrorKind::Usage, "a weight of shape {} has no axis {}", to_string(weight.shape()),
         spec.axis);
  }
  std::int64_t channels = 1;
  std::int64_t inner = weight.size();
  if (spec.axis >= 0) {
    channels = weight.shape()[static_cast<std::size_t>(spec.axis)];
    inner = 1;
    for (auto i = static_cast<std::size_t>(spec.axis) + 1; i < weight.shape().size(); ++i) {
      inner *= weight.shape()[i];
    }
  }
  const Tensor real =
      weight.dtype() == DType::Float32 ? weight.held() : convert(weight, DType::Float32);
  const auto all = real.data<float>();
  std::vector<Range> ranges(static_cast<std::size_t>(channels));
  if (all.empty()) return ranges;
  constexpr std::int64_t kWorthThreads = 1 << 18;
  const int used = weight.size() >= kWorthThreads ? threads : 1;
  const auto rows = spec.axis < 0 && weight.rank() > 1 ? weight.shape()[0] : 1;
  const auto range_of = [&](const std::vector<float>& values) {
    if (method == Method::Whole) return whole_range(values, whole);
    if (method == Method::LeastError) return least_error(values, whole);
    return observed(values, static_cast<std::size_t>(rows), spec.observer, whole);
  };
  parallel_for(channels, used, [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::vector<float>> values(static_cast<std::size_t>(kTogether));
    for (std::int64_t first = begin; first < end; first += kTogether) {
      const auto count = static_cast<std::size_t>(std::min(kTogether, end - first));
      gather(all, channels, inner, first, std::span(values).first(count));
      for (std::size_t i = 0; i < count; ++i) {
        ranges[static_cast<std::size_t>(first) + i] = range_of(values[i]);
      }
    }
  });
  return ranges;
}

}  // namespace quench
