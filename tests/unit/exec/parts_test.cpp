// SPDX-License-Identifier: Apache-2.0
// Batches that memory has no room for are halved, remembered, and refused below one sample.
#include "exec/parts.h"

#include <gtest/gtest.h>

#include <vector>

#include "exec/device_error.h"
#include "quench/error.h"

namespace quench::exec {
namespace {

/// A GPU with room for some samples at a time, and what was tried on it.
struct Gpu {
  std::int64_t samples;
  std::vector<std::int64_t> tried = {};
  std::vector<std::string> warnings = {};
  Parts parts = {};

  void run(std::int64_t batch, bool apart = true) {
    Context context;
    context.log = [&](LogLevel, std::string_view line) { warnings.emplace_back(line); };
    const Room room{.name = "the GPU's memory", .way_out = "--device cpu", .is_full = gpu_is_full};
    parts.run(batch, apart, room, context, [&](std::int64_t size) {
      tried.push_back(size);
      if (size <= samples) return;
      throw Error(ErrorKind::BadData, "CUDA out of memory. Tried to allocate 2.00 GiB")
          .in("node 'conv1'");
    });
  }

  /// The sentence with which it fails.
  std::string refusal(std::int64_t batch, bool apart = true) {
    try {
      run(batch, apart);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Unsupported);
      return error.what();
    }
    return "";
  }
};

using Sizes = std::vector<std::int64_t>;

TEST(Parts, AreHalvedAndRemembered) {
  Gpu gpu{.samples = 3};
  gpu.run(10);
  EXPECT_EQ(gpu.tried, (Sizes{10, 5, 3}));
  EXPECT_EQ(gpu.warnings,
            (std::vector<std::string>{
                "the GPU's memory is too small for 10 samples: they run in parts of 5",
                "the GPU's memory is too small for 10 samples: they run in parts of 3"}));
  gpu.tried.clear();
  gpu.run(10);
  gpu.run(2);
  EXPECT_EQ(gpu.tried, (Sizes{3, 2}));
}

TEST(Parts, WithoutRoomForOneSampleAreRefused) {
  const std::string sentence = "the GPU's memory is too small for one sample; take --device cpu";
  Gpu gpu{.samples = 0};
  EXPECT_EQ(gpu.refusal(4), sentence);
  EXPECT_EQ(gpu.tried, (Sizes{4, 2, 1}));
  EXPECT_EQ(Gpu{.samples = 0}.refusal(1), sentence);
  EXPECT_EQ(Gpu{.samples = 0}.refusal(1, false), sentence);
}

TEST(Parts, OfSamplesThatAreNotApartAreRefused) {
  Gpu gpu{.samples = 3};
  EXPECT_EQ(gpu.refusal(4, false),
            "the GPU's memory is too small for this batch; take a smaller --batch or --device cpu");
  EXPECT_EQ(gpu.tried, Sizes{4});
  EXPECT_TRUE(gpu.warnings.empty());
}

TEST(Parts, LetOtherErrorsPass) {
  Parts parts;
  const Room room{.name = "", .way_out = "", .is_full = gpu_is_full};
  int runs = 0;
  const auto run = [&](std::int64_t) {
    ++runs;
    throw Error(ErrorKind::BadData, "shapes do not fit");
  };
  EXPECT_THROW(parts.run(4, true, room, {}, run), Error);
  EXPECT_EQ(runs, 1);
}

}  // namespace
}  // namespace quench::exec
