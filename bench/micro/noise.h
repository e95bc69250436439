// SPDX-License-Identifier: Apache-2.0
// Made-up batches to time models with.
#pragma once

#include <random>
#include <vector>

#include "quench/graph.h"
#include "quench/tensor.h"

namespace quench::benchmarks {

/// A batch of noise for every input; dimensions that are open are the batch.
inline TensorMap noise(const std::vector<Value>& inputs, std::int64_t batch) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  TensorMap feeds;
  for (const Value& input : inputs) {
    Shape shape;
    for (const Dim& dim : *input.type.shape) {
      shape.push_back(dim.known() ? dim.value : batch);
    }
    Tensor tensor = Tensor::zeros(DType::Float32, shape);
    for (float& each : tensor.mutable_data<float>()) each = normal(random);
    feeds[input.name] = std::move(tensor);
  }
  return feeds;
}

}  // namespace quench::benchmarks
