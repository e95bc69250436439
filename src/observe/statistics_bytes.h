// SPDX-License-Identifier: Apache-2.0
// Statistics as bytes, for those who send them elsewhere.
#pragma once

#include <span>
#include <vector>

#include "quench/statistics.h"

namespace quench::observe {

std::vector<std::byte> to_bytes(const StatisticMap& statistics, std::string_view settings = {});
/// Throws Error(BadData) when they are not whole.
StatisticMap from_bytes(std::span<const std::byte> bytes, std::string* settings = nullptr);

/// Likewise between processes that speak with each other: smaller, and quicker to write and read.
std::vector<std::byte> to_message(const StatisticMap& statistics);
StatisticMap from_message(std::span<const std::byte> message);

}  // namespace quench::observe
