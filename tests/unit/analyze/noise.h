// SPDX-License-Identifier: Apache-2.0
// Samples for small networks.
#pragma once

#include <random>

#include "quench/data.h"

namespace quench::testing {

/// Samples of the network's input from a seeded generator.
class Noise final : public SampleSource {
 public:
  explicit Noise(std::int64_t count) : count_(count) {}
  std::int64_t size() const override { return count_; }
  bool has_labels() const override { return true; }
  Sample read(std::int64_t index) override {
    std::mt19937 generator(static_cast<unsigned>(index) + 5);
    std::normal_distribution<float> normal;
    Tensor x = Tensor::zeros(DType::Float32, {1, 2, 4, 4});
    for (float& each : x.mutable_data<float>()) each = normal(generator);
    return {.inputs = {{"x", x}}, .label = 0, .name = "noise"};
  }

 private:
  std::int64_t count_;
};

}  // namespace quench::testing
