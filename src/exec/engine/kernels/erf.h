// SPDX-License-Identifier: Apache-2.0
// x P(x^2) / Q(x^2), fitted to erf on [-3.92, 3.92] with a relative error of 5e-8; beyond, erf is
// one in float. The highest powers come first.
#pragma once

namespace quench::exec::erf {

inline constexpr float kEnd = 3.92F;
inline constexpr float kP[] = {1.99242439e-08F, -1.95775335e-06F, 0.00014183442F, 0.003700998F,
                               0.0505714624F,   0.199910582F,     1.12837911F};
inline constexpr float kQ[] = {0.000955885856F, 0.014351992F, 0.114992626F, 0.510497801F, 1.0F};

}  // namespace quench::exec::erf
