// SPDX-License-Identifier: Apache-2.0
// Where tests find the sources, the built program, and the shared models; all may be redirected by
// the environment.
#pragma once

#include <filesystem>

namespace quench::testing {

/// What an environment variable names, or else `otherwise`.
std::filesystem::path folder(const char* variable, const char* otherwise);
/// The repository.
std::filesystem::path source_dir();
/// The build tree: `quench` and the modules lie in it.
std::filesystem::path binary_dir();
/// Models and data sets outside the repository; may be absent, then a test that needs it skips.
std::filesystem::path shared_dir();

}  // namespace quench::testing
