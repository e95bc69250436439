// SPDX-License-Identifier: Apache-2.0
// The folders that were known when the tests were built. Only this file is compiled with them, so
// that clones of the repository can share what a compiler cache holds of the tests.
#include "support/paths.h"

#include <cstdlib>

namespace quench::testing {

std::filesystem::path folder(const char* variable, const char* otherwise) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

std::filesystem::path source_dir() { return folder("QUENCH_SOURCE", QUENCH_TEST_SOURCE); }
std::filesystem::path binary_dir() { return folder("QUENCH_BINARY", QUENCH_TEST_BINARY); }
std::filesystem::path shared_dir() { return folder("QUENCH_SHARED", QUENCH_TEST_SHARED); }

}  // namespace quench::testing
