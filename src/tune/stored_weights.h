// SPDX-License-Identifier: Apache-2.0
// Weights that are stored as integers outside of the plan, and how they come into a graph.
#pragma once

#include <functional>

#include "tune/state.h"

namespace quench::tune {

/// One of `State::stored`, with those of its readers that are meant.
struct StoredItem {
  WeightItem item;
  std::size_t place = 0;  ///< in `State::stored`
};

/// The integers of a weight that its readers see dequantised.
struct StoredIntegers {
  quant::QuantWeight weight;
  bool by_gptq = false;
};
/// How `put_stored` goes about it.
struct Storing {
  std::function<StoredIntegers(const StoredItem& stored)> round;
  std::function<void(std::size_t done, std::size_t all)> progress;  ///< may be empty
};

/// Rounds to the nearest, or by what the layer's inputs look like where a technique noted that.
StoredIntegers round_stored(const State& state, const Model& model, const StoredItem& stored);

/// Puts the integers of `items` into `model`, which is the state's own or was made from it. Tells
/// the report of each.
void put_stored(const State& state, std::vector<StoredItem> items, const Storing& how, Model& model,
                QuantizeReport& report);

}  // namespace quench::tune
