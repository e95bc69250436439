// SPDX-License-Identifier: Apache-2.0
// Every fast kernel, and every fusion, gives what the plain kernels give.
#include <gtest/gtest.h>

#include "conformance/cases.h"
#include "contract/random_models.h"
#include "quench/error.h"
#include "quench/session.h"

namespace quench::test {
namespace {

constexpr double kRelative = 1e-3;
constexpr double kAbsolute = 1e-4;
const Context kContext{.threads = 1};

void expect_equal(const TensorMap& fast, const TensorMap& plain) {
  ASSERT_EQ(fast.size(), plain.size());
  for (const auto& [name, tensor] : plain) {
    EXPECT_EQ(difference(fast.at(name), tensor, kRelative, kAbsolute), "") << name;
  }
}

class RandomModels : public testing::TestWithParam<Family> {};

TEST_P(RandomModels, FastEqualsReference) {
  constexpr std::uint64_t kSeeds = 200;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    RandomModel random = GetParam().make(seed);
    SCOPED_TRACE(testing::Message() << GetParam().name << " seed " << seed << random.text);
    try {
      TensorMap before;
      for (const auto& [name, tensor] : random.feeds) {
        before[name] = Tensor::of<float>(tensor.shape(), tensor.data<float>());
      }
      Session plain(random.model, {.reference = true}, kContext);
      Session fast(std::move(random.model), {}, kContext);
      const TensorMap expected = plain.run(random.feeds);
      expect_equal(fast.run(random.feeds), expected);
      // Again: the first run may have packed weights or kept buffers.
      expect_equal(fast.run(random.feeds), expected);
      EXPECT_EQ(random.feeds, before) << "a kernel has written into the caller's memory";
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, RandomModels, testing::ValuesIn(families()),
                         [](const auto& row) { return std::string(row.param.name); });

/// Nothing when the engine does not support the model.
std::optional<Session> open(const Case& which, const SessionOptions& options) {
  try {
    return Session(load_case(which), options, kContext);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Unsupported) << error.what();
    return std::nullopt;
  }
}

TEST(Kernels, FastEqualsReferenceOnConformanceModels) {
  const std::string data = "/usr/share/libonnx-testdata/data";
  if (!std::filesystem::exists(data)) GTEST_SKIP() << "libonnx-testdata is not installed";
  for (const Case& which : list_cases(data)) {
    SCOPED_TRACE(which.name);
    auto plain = open(which, {.reference = true});
    auto fast = open(which, {});
    ASSERT_EQ(plain.has_value(), fast.has_value());
    if (!plain) continue;
    for (const TensorMap& feeds : case_inputs(which, *plain)) {
      expect_equal(fast->run(feeds), plain->run(feeds));
    }
  }
}

}  // namespace
}  // namespace quench::test
