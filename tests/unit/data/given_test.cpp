// SPDX-License-Identifier: Apache-2.0
// Samples that the caller's own code gives.
#include "quench/given_samples.h"
#include "unit/data/data_testing.h"

namespace quench {
namespace {

using testing::error_of;
using testing::expect_contains;
using testing::input;

std::unique_ptr<SampleSource> open(GivenSamples given, const std::vector<Value>& inputs) {
  DataOptions options;
  options.path = kGivenPath;
  options.given = std::make_shared<const GivenSamples>(std::move(given));
  return open_data(options, inputs);
}

const std::vector<Value> kOne = {input("x", DType::Float32, {-1, 2})};
const std::vector<Value> kTwo = {input("x", DType::Float32, {-1, 2}),
                                 input("y", DType::Int64, {-1, 1})};

TEST(Given, BatchesAndSamplesAreCutWhereTheyLie) {
  const Tensor batch = Tensor::of<float>({2, 2}, {1, 2, 3, 4});
  const auto source =
      open({.batches = {{{}, {batch}}, {{}, {Tensor::of<float>({2}, {5, 6})}}}}, kOne);
  ASSERT_EQ(source->size(), 3);
  const Sample second = source->read(1);
  EXPECT_EQ(second.inputs.at("x"), Tensor::of<float>({1, 2}, {3, 4}));
  EXPECT_EQ(second.inputs.at("x").bytes().data(), batch.bytes().data() + 2 * sizeof(float));
  EXPECT_EQ(second.name, "data[0]#1");
  EXPECT_EQ(source->read(2).inputs.at("x"), Tensor::of<float>({1, 2}, {5, 6}));
  EXPECT_FALSE(source->has_labels());
}

TEST(Given, NamesOrOrderAndLabels) {
  const Tensor x = Tensor::of<float>({2, 2}, {1, 2, 3, 4});
  const Tensor y = Tensor::of<std::int64_t>({2, 1}, {7, 8});
  const Tensor labels = Tensor::of<std::int32_t>({2}, {3, 4});
  for (const GivenBatch& batch :
       {GivenBatch{{{"x", x}, {"y", y}, {"label", labels}}, {}}, GivenBatch{{}, {x, y, labels}}}) {
    const auto source = open({.batches = {batch}}, kTwo);
    EXPECT_EQ(source->read(1).inputs.at("y"), Tensor::of<std::int64_t>({1, 1}, {8}));
    EXPECT_EQ(source->read(1).label, 4);
    EXPECT_EQ(count_samples(batch, kTwo), 2);
  }
  EXPECT_EQ(open({.batches = {{{}, {x}}}, .labels = {5, 6}}, kOne)->read(0).label, 5);
}

TEST(Given, WhatDoesNotFitIsNamed) {
  const Tensor x = Tensor::of<float>({2, 2}, {1, 2, 3, 4});
  const auto refused = [](GivenSamples given, const std::vector<Value>& inputs) {
    return error_of(ErrorKind::BadData, [&] { open(std::move(given), inputs); });
  };
  expect_contains(refused({.batches = {{{{"xx", x}}, {}}}}, kOne), {"data[0]", "'xx'", "it has x"});
  expect_contains(refused({.batches = {{{{"x", x}}, {}}}}, kTwo), {"no array", "'y'"});
  expect_contains(refused({.batches = {{{}, {x, x, x}}}}, kOne), {"arrays given: 3"});
  expect_contains(refused({.batches = {{{}, {Tensor::of<float>({3}, {1, 2, 3})}}}}, kOne),
                  {"data[0]"});
  expect_contains(refused({.batches = {{{}, {x}}}, .labels = {1}}, kOne),
                  {"1 labels", "2 samples"});
  expect_contains(refused({}, kOne), {"no samples"});
  DataOptions stored;  // settings of a run whose samples were given
  stored.path = kGivenPath;
  expect_contains(error_of(ErrorKind::Usage, [&] { open_data(stored, kOne); }), {"again"});
}

}  // namespace
}  // namespace quench
