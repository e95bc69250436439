// SPDX-License-Identifier: Apache-2.0
// The name a user probably meant.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace quench {

/// The candidate with the smallest edit distance to `name`, or "" when none is close.
std::string nearest(std::string_view name, std::span<const std::string> candidates);
/// "; did you mean 'x'?", or "" when nothing is close.
std::string did_you_mean(std::string_view name, std::span<const std::string> candidates);

}  // namespace quench
