// SPDX-License-Identifier: Apache-2.0
// Scales that a graph only notes.
#pragma once

#include <string_view>

namespace quench {

/// On an Identity: the step of a scale that its value would have. The value stays in float; files
/// of Paddle say the scale at the operator that makes it.
inline constexpr std::string_view kNotedScale = "noted_scale";

}  // namespace quench
