// SPDX-License-Identifier: Apache-2.0
// Where tests find the sources, the built program, and the shared models; all may be redirected by
// the environment.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace quench::testing {

inline std::filesystem::path folder(const char* variable, const char* otherwise) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

/// The repository.
inline std::filesystem::path source_dir() { return folder("QUENCH_SOURCE", QUENCH_TEST_SOURCE); }
/// The build tree: `quench` and the modules lie in it.
inline std::filesystem::path binary_dir() { return folder("QUENCH_BINARY", QUENCH_TEST_BINARY); }
/// Models and data sets outside the repository; may be absent, then a test that needs it skips.
inline std::filesystem::path shared_dir() { return folder("QUENCH_SHARED", QUENCH_TEST_SHARED); }

}  // namespace quench::testing
