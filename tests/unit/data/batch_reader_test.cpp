// SPDX-License-Identifier: Apache-2.0
// Reading ahead: order, errors, early ends.
#include <chrono>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "data/join.h"
#include "unit/data/data_testing.h"

namespace quench {
namespace {

using testing::error_of;
using testing::expect_contains;

/// Numbers 0, 1, 2, ... that take a random time to read.
class Numbers : public SampleSource {
 public:
  explicit Numbers(std::int64_t size) : size_(size) {}
  std::int64_t size() const override { return size_; }
  bool has_labels() const override { return true; }
  bool concurrent() const override { return parallel; }
  Sample read(std::int64_t index) override {
    const int running = ++running_;
    most_running = std::max(most_running.load(), running);
    furthest = std::max(furthest.load(), index);
    std::this_thread::sleep_for(std::chrono::microseconds(delay ? (index * 7919) % 1500 : 0));
    --running_;
    if (index == broken) throw Error(ErrorKind::BadData, "sample 13 is broken");
    if (index == foreign) throw std::runtime_error("foreign");
    const std::int64_t width = index == odd ? 2 : 1;
    Sample sample;
    sample.inputs["x"] = Tensor::zeros(DType::Int64, {1, width});
    sample.inputs["x"].mutable_data<std::int64_t>()[0] = index;
    sample.label = index * 2;
    sample.name = std::to_string(index);
    return sample;
  }

  std::int64_t broken = -1;
  std::int64_t foreign = -1;
  std::int64_t odd = -1;
  bool parallel = true;
  bool delay = true;
  std::atomic<int> most_running = 0;
  std::atomic<std::int64_t> furthest = 0;

 private:
  std::int64_t size_;
  std::atomic<int> running_ = 0;
};

Context with_threads(int threads) {
  Context context;
  context.threads = threads;
  return context;
}

TEST(BatchReader, KeepsTheOrderForAnyBatchAndThreads) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 20; ++round) {
    const auto size = static_cast<std::int64_t>(random() % 50);
    const auto batch = static_cast<std::int64_t>(random() % 9 + 1);
    Numbers source(size);
    BatchReader reader(source, batch, with_threads(static_cast<int>(random() % 5 + 1)));
    std::int64_t seen = 0;
    while (const auto got = reader.next()) {
      ASSERT_EQ(got->size(), std::min(batch, size - seen));
      const Tensor& x = got->inputs.at("x");
      ASSERT_EQ(x.shape(), (Shape{got->size(), 1}));
      for (std::int64_t i = 0; i < got->size(); ++i, ++seen) {
        const auto at = static_cast<std::size_t>(i);
        ASSERT_EQ(x.data<std::int64_t>()[at], seen);
        ASSERT_EQ(got->labels[at], seen * 2);
        ASSERT_EQ(got->names[at], std::to_string(seen));
      }
    }
    EXPECT_EQ(seen, size);
    EXPECT_FALSE(reader.next());
  }
}

TEST(BatchReader, HandsOutWhatLiesBeforeAnError) {
  Numbers source(40);
  source.broken = 13;
  BatchReader reader(source, 4, with_threads(3));
  for (int i = 0; i < 3; ++i) ASSERT_EQ(reader.next()->size(), 4);
  for (int i = 0; i < 2; ++i) {
    expect_contains(error_of(ErrorKind::BadData, [&] { reader.next(); }), {"sample 13 is broken"});
  }
  Numbers other(3);
  other.foreign = 1;
  BatchReader second(other, 1);
  EXPECT_TRUE(second.next());
  expect_contains(error_of(ErrorKind::Internal, [&] { second.next(); }), {"foreign"});
}

TEST(BatchReader, ABatchEndsBeforeASampleOfAnotherShape) {
  Numbers source(8);
  source.odd = 3;
  BatchReader reader(source, 4, with_threads(2));
  const std::vector<std::vector<std::string>> expected = {
      {"0", "1", "2"}, {"3"}, {"4", "5", "6", "7"}};
  for (const auto& names : expected) {
    const auto batch = reader.next();
    ASSERT_TRUE(batch);
    EXPECT_EQ(batch->names, names);
    const std::int64_t width = names.front() == "3" ? 2 : 1;
    EXPECT_EQ(batch->inputs.at("x").shape(), (Shape{batch->size(), width}));
    EXPECT_EQ(batch->inputs.at("x").data<std::int64_t>()[0], std::stoll(names.front()));
  }
  EXPECT_FALSE(reader.next());
}

TEST(BatchReader, SamplesOfUnlikeShapeAreNamedWhereABatchMustBeWhole) {
  Numbers source(4);
  source.odd = 1;
  BatchReader pairs(source, 2, {}, UnlikeSamples::Refuse);
  expect_contains(error_of(ErrorKind::BadData, [&] { pairs.next(); }),
                  {"1 has 'x' int64[1,2]", "0 has 'x' int64[1,1]"});
  BatchReader singles(source, 1, {}, UnlikeSamples::Refuse);
  EXPECT_TRUE(singles.next());
  EXPECT_EQ(singles.next()->inputs.at("x").shape(), (Shape{1, 2}));
}

Sample sample_of(const std::string& name, TensorMap inputs) {
  Sample sample;
  sample.inputs = std::move(inputs);
  sample.name = name;
  return sample;
}

TEST(Join, LooksAtEverySampleAndInput) {
  const Tensor one = Tensor::of<float>({1, 2}, {1.0F, 2.0F});
  const Tensor two = Tensor::of<float>({1, 2}, {3.0F, 4.0F});
  const Tensor wide = Tensor::of<float>({1, 3}, {5.0F, 6.0F, 7.0F});
  const Sample a = sample_of("a", {{"x", one}});
  const Batch batch = join({a, sample_of("b", {{"x", two}})});
  EXPECT_EQ(batch.inputs.at("x").shape(), (Shape{2, 2}));
  EXPECT_EQ(to_float(batch.inputs.at("x")), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(batch.names, (std::vector<std::string>{"a", "b"}));
  const std::vector<Sample> unlike = {sample_of("b", {{"x", wide}}), sample_of("b", {{"y", one}}),
                                      sample_of("b", {{"x", one}, {"y", one}}),
                                      sample_of("b", {{"x", Tensor::zeros(DType::Int64, {1, 2})}}),
                                      sample_of("b", {{"x", Tensor::zeros(DType::Float32, {})}})};
  for (const Sample& b : unlike) {
    EXPECT_FALSE(alike(a, b));
    error_of(ErrorKind::BadData, [&] { join({a, b}); });
    error_of(ErrorKind::BadData, [&] { join({b, a}); });
    EXPECT_EQ(join({b}).size(), 1);
  }
}

TEST(BatchReader, ReadsAheadButNotWithoutBounds) {
  Numbers source(100000);
  source.delay = false;
  const auto begin = std::chrono::steady_clock::now();
  {
    BatchReader reader(source, 4, with_threads(2));
    ASSERT_TRUE(reader.next());
    for (int i = 0; i < 200 && source.furthest < 8; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_GE(source.furthest, 8) << "nothing was read ahead";
    EXPECT_LE(source.furthest, 20);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST(BatchReader, UsesOneThreadUnlessTheSourceAllowsMore) {
  Numbers serial(60);
  serial.parallel = false;
  BatchReader reader(serial, 8, with_threads(4));
  while (reader.next()) {
  }
  EXPECT_EQ(serial.most_running, 1);
  Numbers parallel(60);
  BatchReader wide(parallel, 8, with_threads(4));
  while (wide.next()) {
  }
  EXPECT_GT(parallel.most_running, 1);
}

TEST(BatchReader, StopsWhenCancelled) {
  Numbers source(100000);
  std::atomic<bool> cancel = false;
  Context context = with_threads(2);
  context.cancel = &cancel;
  BatchReader reader(source, 1000, context);
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    cancel = true;
  });
  EXPECT_THROW(while (reader.next()){}, Error);
  later.join();
}

TEST(BatchReader, RefusesEmptyBatches) {
  Numbers source(1);
  expect_contains(error_of(ErrorKind::Usage, [&] { BatchReader(source, 0); }), {"0"});
}

}  // namespace
}  // namespace quench
