// SPDX-License-Identifier: Apache-2.0
// Statistics as the bytes that their file holds, for those who send them elsewhere.
#pragma once

#include <span>
#include <vector>

#include "quench/statistics.h"

namespace quench::observe {

std::vector<std::byte> to_bytes(const StatisticMap& statistics, std::string_view settings = {});
/// Throws Error(BadData) when they are not whole.
StatisticMap from_bytes(std::span<const std::byte> bytes, std::string* settings = nullptr);

}  // namespace quench::observe
