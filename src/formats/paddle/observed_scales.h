// SPDX-License-Identifier: Apache-2.0
// Scales that a program only notes.
#pragma once

#include <map>
#include <span>
#include <string>

#include "quench/tensor.h"

namespace quench::paddle {

/// The program with the scales of its observers (`only_observer`) at the operators whose results
/// they tell of, as `out_threshold`: observers become no nodes, and what is written back without
/// their scales loses much on integers (PP-OCR's direction classifier: 88.7 to 69.3).
std::string with_thresholds(std::span<const std::byte> file,
                            const std::map<std::string, Tensor>& parameters);

}  // namespace quench::paddle
