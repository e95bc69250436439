// SPDX-License-Identifier: Apache-2.0
// Runs that read weights together give what single runs of a model in memory give.
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <random>

#include "base/memory.h"
#include "quench/session.h"
#include "unit/passes/builder.h"

namespace quench {
namespace {

using testing::Builder;

constexpr std::int64_t kWidth = 512;  // a weight takes 1 MB: few of those stay in memory
constexpr int kLayers = 64;

Tensor random_tensor(const Shape& shape, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-0.1F, 0.1F);
  std::vector<float> values(static_cast<std::size_t>(*num_elements(shape)));
  for (float& value : values) value = uniform(generator);
  return Tensor::of<float>(shape, values);
}

Model deep_model() {
  Builder builder;
  builder.input("x", {{.symbol = "N"}, {.value = kWidth}});
  std::string last = "x";
  for (unsigned i = 0; i < kLayers; ++i) {
    const std::string weight = "w" + std::to_string(i);
    builder.constant(weight, random_tensor({kWidth, kWidth}, i));
    const std::string product = "p" + std::to_string(i);
    builder.node("MatMul", {last, weight}, {product});
    last = "r" + std::to_string(i);
    builder.node("Tanh", {product}, {last});
  }
  return builder.output(last).model;
}

/// One under which the weights are read in every run, and a few runs have room.
Context with_ceiling() {
  Context context;
  context.threads = 2;
  constexpr std::uint64_t kMillion = 1'000'000;
  context.max_memory_mb = static_cast<int>(resident_bytes() / kMillion) + kLayers * 3 / 2;
  return context;
}

TEST(RunsTogether, GiveWhatEachGivesAlone) {
  const Model model = deep_model();
  const std::string end = model.graph[model.graph.outputs.at(0)].name;
  const SessionOptions options{.taps = {"r9", "r40"}};
  Session free(model, options);
  Session streamed(model, options, with_ceiling());
  EXPECT_EQ(free.runs_together(), 1U);
  EXPECT_GT(streamed.runs_together(), 1U);
  std::vector<std::pair<TensorMap, std::vector<std::string>>> cases;
  for (unsigned i = 0; i < 40; ++i) {
    const Tensor given = random_tensor({1 + i % 3, kWidth}, 100 + i);
    if (i % 4 == 3) {
      cases.push_back({{{"r9", given}}, {"r40", end}});
    } else {
      cases.push_back({{{"x", given}},
                       i % 4 == 2 ? std::vector<std::string>{"r9"} : std::vector<std::string>{}});
    }
  }
  std::vector<RunRequest> runs;
  for (const auto& [feeds, wanted] : cases) {
    runs.push_back({.feeds = streamed.enter(feeds), .wanted = wanted});
  }
  const std::vector<EngineValues> results = streamed.compute_all(runs);
  ASSERT_EQ(results.size(), cases.size());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(streamed.leave(results[i]), free.run(cases[i].first, cases[i].second));
  }
}

TEST(RunsTogether, ShowTheSamplesOfEachRunInOrder) {
  const Model model = deep_model();
  std::map<std::size_t, std::vector<std::pair<std::size_t, std::int64_t>>> seen;  // by tap
  std::mutex mutex;
  SessionOptions options{.taps = {"x", "r9"}};
  options.on_sample = [&](const TapSample& sample) {
    const std::lock_guard lock(mutex);
    seen[sample.tap].emplace_back(sample.run, sample.index);
  };
  Session session(model, options, with_ceiling());
  ASSERT_GT(session.runs_together(), 2U);
  std::vector<TensorMap> feeds;
  for (unsigned i = 0; i < 3; ++i) feeds.push_back({{"x", random_tensor({1, kWidth}, i)}});
  (void)session.run_all(feeds);
  const std::vector<std::pair<std::size_t, std::int64_t>> expected = {{0, 0}, {1, 0}, {2, 0}};
  EXPECT_EQ(seen[0], expected);
  EXPECT_EQ(seen[1], expected);
}

}  // namespace
}  // namespace quench
