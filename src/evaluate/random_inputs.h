// SPDX-License-Identifier: Apache-2.0
// Shapes for inputs whose dimensions are open, and seeded tensors to fill them.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "quench/graph.h"

namespace quench {

/// The batch a model is fixed to, or `wanted` when it leaves the first dimension open.
std::int64_t effective_batch(const std::vector<Value>& inputs, std::int64_t wanted);

/// A shape for every input: `given` first, then the model's own, then `batch` for an open first
/// dimension. A symbol that one shape fixes is fixed everywhere. Throws Error(BadData) that
/// names the input whose dimensions stay open, or a given name or shape that does not fit.
std::map<std::string, Shape> resolve_shapes(const std::vector<Value>& inputs,
                                            const std::map<std::string, Shape>& given,
                                            std::int64_t batch);

/// Normal floats; 0 or 1 for wide integers and bools, which may be indices or masks; any byte.
Tensor random_tensor(DType dtype, const Shape& shape, std::mt19937_64& generator);
/// All elements `value`.
Tensor constant_tensor(DType dtype, const Shape& shape, float value);

/// A tensor for every input.
TensorMap random_feeds(const std::vector<Value>& inputs, const std::map<std::string, Shape>& shapes,
                       std::mt19937_64& generator);

/// The inputs that a run must be fed with: old files list their weights among the inputs too.
std::vector<Value> required_inputs(const Graph& graph);
std::vector<Value> output_values(const Graph& graph);
/// The outputs that hold floats, or may.
std::vector<std::string> float_output_names(const Graph& graph);
/// Names of values, for messages.
std::vector<std::string> names_of(const std::vector<Value>& values);

}  // namespace quench
