// SPDX-License-Identifier: Apache-2.0
// Runs the tests of a program, on a lesser machine with --max-isa=NAME.
#include <gtest/gtest.h>

#include <string_view>

#include "quench/cpu.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  constexpr std::string_view kFlag = "--max-isa=";
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word.starts_with(kFlag)) quench::set_max_isa(quench::isa_named(word.substr(kFlag.size())));
  }
  return RUN_ALL_TESTS();
}
