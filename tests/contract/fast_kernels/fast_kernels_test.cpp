// SPDX-License-Identifier: Apache-2.0
// Every fast kernel gives what its reference gives, on every instruction set that this machine has.
#include <gtest/gtest.h>

#include "contract/fast_kernels/problem.h"
#include "contract/isa_scope.h"

namespace quench::fast {
namespace {

void check(const Problem& problem) {
  problem.run();
  const std::vector<double> got = problem.got();
  const std::vector<double> wanted = problem.wanted();
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double limit = problem.absolute + problem.relative * std::abs(wanted[i]);
    // Not the other way round: NaN is no match.
    ASSERT_TRUE(std::abs(got[i] - wanted[i]) <= limit)
        << "element " << i << " of " << got.size() << ": " << got[i] << ", not " << wanted[i];
  }
}

class FastKernels : public ::testing::TestWithParam<FastKernel> {};

TEST_P(FastKernels, EqualTheirReferenceOnEveryInstructionSet) {
  const FastKernel& kernel = GetParam();
  int checked = 0;
  for (const Isa isa : all_isas()) {
    if (isa < kernel.least || isa > machine_isa()) continue;
    const testing::IsaScope scope(isa);
    ASSERT_EQ(used_isa(), isa);
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      SCOPED_TRACE(::testing::Message()
                   << kernel.name << " on " << to_string(isa) << ", seed " << seed);
      Random random(seed);
      check(kernel.make(random, Size::Small));
      if (HasFatalFailure()) return;
    }
    ++checked;
  }
  if (checked == 0) GTEST_SKIP() << "this machine has no " << to_string(kernel.least);
}

INSTANTIATE_TEST_SUITE_P(List, FastKernels,
                         ::testing::ValuesIn(fast_kernels().begin(), fast_kernels().end()),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace quench::fast
