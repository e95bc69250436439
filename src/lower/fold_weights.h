// SPDX-License-Identifier: Apache-2.0
// Weights that are computed from constants become constants: quantisation knows no others.
#pragma once

#include "quench/model.h"

namespace quench {

/// A transposed table that other nodes read too, as language models have them (tied embeddings).
enum class SharedTables {
  Copied,  ///< the transposed table becomes a constant of its own
  Kept,    ///< the table stays one constant, transposed where it is read
};

/// Computes float values that depend on constants alone and that other nodes read, where the result
/// is no larger than those constants: Transpose, Reshape, Slice, Concat or Mul of an initialiser.
/// Nodes that quantise or dequantise stay. Types must have been inferred. Needs the engine only
/// where there is something to compute.
void fold_weights(Model& model, SharedTables tables);

}  // namespace quench
