// SPDX-License-Identifier: Apache-2.0
// How loops are written for several instruction sets: the one place that names them to the
// compiler.
#pragma once

#include <atomic>

#include "quench/cpu.h"

namespace quench::cpu {

/// `used_isa`, or -1 before anybody has asked.
extern std::atomic<int> level;

/// Whether loops that need `isa` may run.
inline bool uses(Isa isa) noexcept {
  const int now = level.load(std::memory_order_relaxed);
  return static_cast<int>(isa) <= (now >= 0 ? now : static_cast<int>(used_isa()));
}

}  // namespace quench::cpu

// A function that is written with the intrinsics of one instruction set is marked with its name,
// and called where `uses` says so.
#if defined(__x86_64__)
#define QUENCH_X86 1
#define QUENCH_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,fma")))
#define QUENCH_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,fma,avx512vnni")))
#define QUENCH_VBMI __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,fma,avx512vbmi")))
#endif

/// Inlined whatever the compiler thinks of it, so that it is compiled as its caller is.
#define QUENCH_INLINE inline __attribute__((always_inline))

/// A loop in plain C++ that is compiled for three instruction sets: what follows is the body of
/// `name`, which calls the best copy there is. Unlike target_clones it can be capped, and
/// sanitizers can run it.
// NOLINTBEGIN(bugprone-macro-parentheses): types and lists of parameters take none
#if defined(QUENCH_X86)
#define QUENCH_MULTIVERSION(result, name, parameters, arguments)                    \
  static QUENCH_INLINE result name##_body parameters;                               \
  __attribute__((target("avx512f"))) static result name##_avx512 parameters {       \
    return name##_body arguments;                                                   \
  }                                                                                 \
  __attribute__((target("avx2"))) static result name##_avx2 parameters {            \
    return name##_body arguments;                                                   \
  }                                                                                 \
  static result name##_portable parameters { return name##_body arguments; }        \
  result name parameters {                                                          \
    if (::quench::cpu::uses(::quench::Isa::Avx512)) return name##_avx512 arguments; \
    if (::quench::cpu::uses(::quench::Isa::Avx2)) return name##_avx2 arguments;     \
    return name##_portable arguments;                                               \
  }                                                                                 \
  static QUENCH_INLINE result name##_body parameters
#else
#define QUENCH_MULTIVERSION(result, name, parameters, arguments) result name parameters
#endif
// NOLINTEND(bugprone-macro-parentheses)
