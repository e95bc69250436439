// SPDX-License-Identifier: Apache-2.0
// Sums stay in registers only where every loop over them is unrolled.
#pragma once

#if defined(__clang__)
#define QUENCH_UNROLL _Pragma("clang loop unroll(full)")
#else
#define QUENCH_UNROLL _Pragma("GCC unroll 16")
#endif
