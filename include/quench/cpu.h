// SPDX-License-Identifier: Apache-2.0
// The instruction sets that the library has loops for, and a cap on which of them it uses.
#pragma once

#include <span>
#include <string_view>

namespace quench {

/// Each includes those before it. Avx512 means F, BW, VL and DQ; Vnni multiplies bytes exactly;
/// Vbmi looks bytes up in registers.
enum class Isa { Portable, Avx2, Avx512, Vnni, Vbmi };

/// Every one, in order.
std::span<const Isa> all_isas() noexcept;
/// "portable", "avx2", "avx512", "vnni", "vbmi".
std::string_view to_string(Isa isa) noexcept;
/// The reverse; an unknown name is an Error(Usage).
Isa isa_named(std::string_view name);

/// The best that this processor has.
Isa machine_isa() noexcept;
/// The cap; Vbmi unless it was set.
Isa max_isa() noexcept;
/// From now on no loop of the library uses more than `isa`, in the whole process: for tests, and to
/// see what a lesser processor does. oneDNN follows only when this is called before the first
/// session opens; libtorch's own kernels do not follow.
void set_max_isa(Isa isa) noexcept;
/// What loops use: the lesser of `machine_isa` and `max_isa`.
Isa used_isa() noexcept;

}  // namespace quench
