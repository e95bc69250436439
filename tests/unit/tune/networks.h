// SPDX-License-Identifier: Apache-2.0
// Two layers with something between them, whose channels differ much in size.
#pragma once

#include <cmath>

#include "calibrate/collect.h"
#include "quench/session.h"
#include "unit/plan/networks.h"

namespace quench::testing {

/// conv "a" (channel 1 is a thousandth of channel 0), then whatever the caller adds, then "out".
struct Uneven : Network {
  Uneven() {
    numbers("a_w", {2, 2, 1, 1}, {8, -4, 0.008F, 0.004F});
    numbers("a_b", {2}, {1, 0.001F});
    node("Conv", {"x", "a_w", "a_b"}, {"a"}).name = "conv_a";
  }
  /// The second layer needs the small channel as much as the large one.
  Uneven& finish(const std::string& from) {
    numbers("out_w", {2, 2, 1, 1}, {0.1F, 100, -0.2F, 150});
    numbers("out_b", {2}, {0.5F, -0.5F});
    node("Conv", {from, "out_w", "out_b"}, {"out"}).name = "conv_out";
    output("out");
    infer_types(model);
    return *this;
  }
};

/// A batch for "x" that is the same every time.
inline TensorMap batch(int number = 0) {
  std::vector<float> values(32);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::sin(static_cast<float>(i * 7 + 1) + 0.37F * static_cast<float>(number));
  }
  return {{"x", Tensor::of<float>({1, 2, 4, 4}, std::span<const float>(values))}};
}

inline std::vector<float> run(const Model& model, const TensorMap& inputs) {
  return to_float(Session(model, {}, {}).run(inputs).at("out"));
}

inline double squared_distance(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::pow(double{a[i]} - double{b[i]}, 2);
  return sum;
}

/// Mean over positions of output channel `c`.
inline double mean_of(const std::vector<float>& values, std::size_t c) {
  double sum = 0;
  for (std::size_t i = 0; i < 16; ++i) sum += static_cast<double>(values[c * 16 + i]);
  return sum / 16;
}

/// Grids of the plan from the values that the batches give.
inline QuantSolution solved(const Model& model, const QuantPlan& plan,
                            const std::vector<TensorMap>& batches) {
  std::vector<std::string> names;
  for (const auto& [name, value] : plan.values) {
    if (value.kind == ValuePlan::Kind::Observed) names.push_back(name);
  }
  StatisticMap statistics;
  SessionOptions options;
  options.taps = names;
  Session session(model, options, {});
  for (const TensorMap& each : batches) {
    const TensorMap seen = session.run(each, names);
    for (const auto& [name, tensor] : seen) statistics[name].add_sample(tensor.data<float>());
  }
  return calibrate::solve(model, plan, statistics);
}

}  // namespace quench::testing
