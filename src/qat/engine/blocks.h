// SPDX-License-Identifier: Apache-2.0
// A graph in pieces that are reconstructed one after the other.
#pragma once

#include "qat/engine/program.h"

namespace quench::qat {

/// What is computed of one value from one value before it.
struct Block {
  std::string input;
  std::string output;
  std::vector<WeightKey> weights;  ///< that the plan quantises, at least one
};

/// Pieces between values that everything behind them goes through, in order; together they make up
/// the graph from its first such value on. `layers` is the most that are put together where no
/// branch holds them together.
std::vector<Block> blocks_of(const Program& program, std::size_t layers);

}  // namespace quench::qat
