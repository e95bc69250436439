// SPDX-License-Identifier: Apache-2.0
// Errors, suggestions, parallel loops and the context.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "base/format.h"
#include "base/nearest.h"
#include "base/parallel.h"
#include "quench/context.h"
#include "quench/cpu.h"

namespace quench {
namespace {

TEST(Cpu, CapBindsAndNamesGoBothWays) {
  for (const Isa isa : all_isas()) EXPECT_EQ(isa_named(to_string(isa)), isa);
  EXPECT_THROW(isa_named("sse9"), Error);
  for (const Isa isa : all_isas()) {
    set_max_isa(isa);
    EXPECT_EQ(max_isa(), isa);
    EXPECT_EQ(used_isa(), std::min(isa, machine_isa()));
  }
}

TEST(Error, FramesReadFromTheOutside) {
  Error error(ErrorKind::BadModel, "it has no type");
  error.in("node 'conv1'").in("model.onnx");
  EXPECT_STREQ(error.what(), "model.onnx: node 'conv1': it has no type");
  EXPECT_EQ(error.sentence(), "it has no type");
}

TEST(Nearest, SuggestsWhatIsCloseAndNothingElse) {
  const std::vector<std::string> names = {"top1", "top5", "cosine"};
  EXPECT_EQ(nearest("top_1", names), "top1");
  EXPECT_EQ(nearest("cosin", names), "cosine");
  EXPECT_EQ(nearest("cosine_distance", names), "cosine");
  EXPECT_EQ(nearest("sensitivity", names), "");
}

TEST(Parallel, CoversEveryIndexOnce) {
  for (const int threads : {1, 2, 3, 16}) {
    std::vector<std::atomic<int>> seen(101);
    parallel_for(101, threads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) ++seen[static_cast<std::size_t>(i)];
    });
    for (const auto& count : seen) EXPECT_EQ(count, 1);
  }
}

TEST(Parallel, RethrowsTheFirstError) {
  EXPECT_THROW(parallel_for(8, 4, [](auto, auto) { fail(ErrorKind::BadData, "bad"); }), Error);
}

TEST(Context, CancelledWorkStopsWithItsOwnKind) {
  std::atomic<bool> stop = false;
  Context context;
  context.cancel = &stop;
  EXPECT_NO_THROW(context.check_cancelled());
  stop = true;
  try {
    context.check_cancelled();
    FAIL() << "it went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Cancelled);
  }
}

}  // namespace
}  // namespace quench
