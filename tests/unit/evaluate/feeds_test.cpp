// SPDX-License-Identifier: Apache-2.0
// Batches at random, and the rows that belong to real samples.
#include "evaluate/feeds.h"

#include <gtest/gtest.h>

#include "quench/error.h"

namespace quench {
namespace {

std::vector<Value> one_input(std::int64_t batch) {
  Value value;
  value.name = "x";
  value.type = ValueType::tensor(DType::Float32, std::vector<Dim>{{batch, ""}, {2, ""}});
  return {value};
}

std::vector<std::int64_t> sizes(std::int64_t model_batch, std::int64_t wanted,
                                std::int64_t samples) {
  EvaluateOptions options;
  options.batch = wanted;
  options.random.samples = samples;
  const std::vector<Value> inputs = one_input(model_batch);
  const Context context;
  FeedReader reader(options, inputs, context);
  std::vector<std::int64_t> result;
  while (const auto feed = reader.next()) {
    EXPECT_EQ(feed->inputs.at("x").shape()[0], feed->rows);
    EXPECT_EQ(feed->rows, model_batch > 0 ? model_batch : feed->samples);
    result.push_back(feed->samples);
  }
  return result;
}

TEST(FeedReader, HandsOutEverySampleOnce) {
  EXPECT_EQ(sizes(-1, 4, 10), (std::vector<std::int64_t>{4, 4, 2}));
  EXPECT_EQ(sizes(4, 99, 10), (std::vector<std::int64_t>{4, 4, 2}));
  EXPECT_EQ(sizes(-1, 16, 3), (std::vector<std::int64_t>{3}));
}

TEST(FeedReader, RefusesAnEmptyBatch) { EXPECT_THROW(sizes(-1, 0, 3), Error); }

TEST(FeedReader, StopsWhenAsked) {
  std::atomic<bool> stop{true};
  Context context;
  context.cancel = &stop;
  const EvaluateOptions options;
  const std::vector<Value> inputs = one_input(-1);
  FeedReader reader(options, inputs, context);
  EXPECT_THROW(reader.next(), Error);
}

TEST(RealRows, LeavesOutTheFilling) {
  const Tensor output = Tensor::of<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(real_rows(output, 3, 4), Tensor::of<float>({3, 2}, {1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(real_rows(output, 1, 2), Tensor::of<float>({2, 2}, {1, 2, 3, 4}));
  EXPECT_EQ(real_rows(output, 4, 4), output);
  EXPECT_EQ(real_rows(output, 2, 3), output) << "rows that are no multiple of the batch stay";
}

}  // namespace
}  // namespace quench
