// SPDX-License-Identifier: Apache-2.0
// A frozen TensorFlow graph (GraphDef) as a model.
#pragma once

#include <span>

#include "quench/model.h"

namespace quench::tensorflow {

Model read_bytes(std::span<const std::byte> file);
/// Whether the bytes open with a node of a graph, or are a SavedModel, which is refused with what
/// to do. Cheap; never throw.
bool is_graph(std::span<const std::byte> file) noexcept;
bool is_saved_model(std::span<const std::byte> file) noexcept;

}  // namespace quench::tensorflow
