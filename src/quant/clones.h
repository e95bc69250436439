// SPDX-License-Identifier: Apache-2.0
// A mark for hot loops: the compiler makes them for several generations of x86, the loader picks.
#pragma once

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define QUENCH_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define QUENCH_SANITIZED 1
#endif

// Sanitizers are not ready yet when the loader asks which copy to take.
#if defined(__x86_64__) && defined(__linux__) && !defined(QUENCH_SANITIZED)
#define QUENCH_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define QUENCH_CLONES
#endif
