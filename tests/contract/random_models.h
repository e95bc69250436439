// SPDX-License-Identifier: Apache-2.0
// Small models with random shapes, attributes and weights, the same for the same seed.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "quench/model.h"

namespace quench::test {

/// A model, inputs for it, and what it holds in words.
struct RandomModel {
  Model model;
  TensorMap feeds;
  std::string text;
};

/// A family of models.
struct Family {
  const char* name;
  RandomModel (*make)(std::uint64_t seed);
};

/// How GoogleTest names a family in its messages.
inline void PrintTo(const Family& family, std::ostream* out) { *out << family.name; }

const std::vector<Family>& families();

}  // namespace quench::test
