// SPDX-License-Identifier: Apache-2.0
// Metrics for tasks: boxes, areas, texts, correlations; which of them fit an output.
#include <gtest/gtest.h>

#include <algorithm>

#include "metrics/boxes.h"
#include "metrics/metric.h"
#include "quench/error.h"

namespace quench {
namespace {

double value_of(const char* name, const Tensor& actual, const Tensor& expected) {
  const auto metric = make_metric(name);
  metric->add(actual, expected);
  return metric->value();
}

bool fits(const char* name, const Tensor& output) {
  const auto names = metrics::fitting_metrics(output);
  return std::ranges::find(names, name) != names.end();
}

/// Two things of two classes, as corners, score and class.
Tensor rows(float shift, float second_score = 0.8F) {
  return Tensor::of<float>({1, 3, 6}, {10 + shift, 10, 50 + shift, 50, 0.9F, 1,  //
                                       100, 100, 140, 140, second_score, 2,      //
                                       0, 0, 0, 0, 0, 0});
}

TEST(Boxes, F1CountsWhatOverlapsByHalf) {
  EXPECT_DOUBLE_EQ(value_of("box_f1", rows(0), rows(0)), 100);
  EXPECT_DOUBLE_EQ(value_of("box_f1", rows(5), rows(0)), 100);
  EXPECT_DOUBLE_EQ(value_of("box_f1", rows(39), rows(0)), 50);            // one is elsewhere
  EXPECT_NEAR(value_of("box_f1", rows(0, 0.1F), rows(0)), 66.667, 0.01);  // one is not seen
}

TEST(Boxes, MapAsksForMoreOverlap) {
  EXPECT_DOUBLE_EQ(value_of("map", rows(0), rows(0)), 100);
  // 35 of 45 columns shared: right up to an overlap of 0.75, so 6 of 10 for one of two classes.
  EXPECT_NEAR(value_of("map", rows(5), rows(0)), 80, 1e-9);
  EXPECT_DOUBLE_EQ(value_of("map", rows(0, 0.1F), rows(0)), 50);
}

TEST(Boxes, PaddlesOrderIsTold) {
  const Tensor paddle =
      Tensor::of<float>({2, 6}, {1, 0.9F, 10, 10, 50, 50, 2, 0.8F, 100, 100, 140, 140});
  const auto boxes = metrics::boxes_of(paddle, paddle);
  ASSERT_EQ(boxes.size(), 1U);
  EXPECT_EQ(boxes[0][0].label, 1);
  EXPECT_DOUBLE_EQ(boxes[0][1].x1, 100);
  EXPECT_TRUE(fits("box_f1", paddle));
  EXPECT_FALSE(fits("cosine", paddle));  // the number of rows varies
  // As many or as few as the quantised model finds.
  const Tensor fewer = Tensor::of<float>({1, 6}, {1, 0.9F, 10, 10, 50, 50});
  EXPECT_NEAR(value_of("box_f1", fewer, paddle), 66.667, 0.01);
  const Tensor none = Tensor::zeros(DType::Float32, {0, 6});
  EXPECT_DOUBLE_EQ(value_of("box_f1", none, paddle), 0);
  EXPECT_DOUBLE_EQ(value_of("box_f1", none, none), 100);
}

/// [4 + 2 classes, 100 places]: two places that see one thing, and noise.
Tensor head(bool transposed) {
  Tensor tensor = Tensor::zeros(DType::Float32, transposed ? Shape{1, 100, 6} : Shape{1, 6, 100});
  const auto values = tensor.mutable_data<float>();
  const auto set = [&](std::size_t place, std::initializer_list<float> column) {
    std::size_t channel = 0;
    for (const float value : column) {
      values[transposed ? place * 6 + channel : channel * 100 + place] = value;
      ++channel;
    }
  };
  set(7, {30, 30, 40, 40, 0.1F, 0.9F});
  set(8, {32, 30, 40, 40, 0.1F, 0.8F});
  set(50, {90, 90, 10, 10, 0.7F, 0.2F});
  return tensor;
}

TEST(Boxes, HeadsAreSuppressed) {
  const Tensor one = head(false);
  const auto boxes = metrics::boxes_of(one, one);
  ASSERT_EQ(boxes[0].size(), 2U);
  EXPECT_DOUBLE_EQ(boxes[0][0].x1, 10);
  EXPECT_EQ(boxes[0][0].label, 1);
  EXPECT_TRUE(fits("map", one));
  EXPECT_THROW((void)value_of("map", Tensor::zeros(DType::Float32, {2, 3}),
                              Tensor::zeros(DType::Float32, {2, 3})),
               Error);
}

TEST(Iou, IsTheMeanOverClasses) {
  const Tensor want = Tensor::of<float>({1, 2, 2, 2}, {1, 1, 0, 0, 0, 0, 1, 1});
  Tensor got = want;
  got.mutable_data<float>()[1] = 0;  // a pixel of class 0 becomes one of class 1
  got.mutable_data<float>()[5] = 1;
  EXPECT_DOUBLE_EQ(value_of("iou", want, want), 100);
  EXPECT_NEAR(value_of("iou", got, want), 100 * (0.5 + 2.0 / 3) / 2, 1e-9);
  EXPECT_TRUE(fits("iou", Tensor::zeros(DType::Float32, {1, 21, 64, 64})));
  EXPECT_FALSE(fits("iou", Tensor::zeros(DType::Float32, {1, 255, 13, 13})));
}

/// Steps whose best class is as said.
Tensor steps(std::initializer_list<int> best) {
  Tensor tensor = Tensor::zeros(DType::Float32, {1, static_cast<std::int64_t>(best.size()), 4});
  std::size_t at = 0;
  for (const int each : best) {
    tensor.mutable_data<float>()[at + static_cast<std::size_t>(each)] = 1;
    at += 4;
  }
  return tensor;
}

TEST(Ctc, RepetitionsAndBlanksFallAway) {
  EXPECT_DOUBLE_EQ(value_of("ctc", steps({0, 1, 1, 0, 1, 3}), steps({1, 0, 0, 1, 3, 3})), 100);
  EXPECT_DOUBLE_EQ(value_of("ctc", steps({0, 1, 1, 1, 1, 3}), steps({1, 0, 0, 1, 3, 3})), 0);
  EXPECT_TRUE(fits("ctc", steps({0, 1, 2})));
  EXPECT_FALSE(fits("ctc", Tensor::zeros(DType::Float32, {1, 3, 4})));  // features, not shares
}

/// Two tensors of one sample as one of two.
Tensor both(const Tensor& a, const Tensor& b) {
  std::vector<float> values = to_float(a);
  const std::vector<float> more = to_float(b);
  values.insert(values.end(), more.begin(), more.end());
  Shape shape = a.shape();
  shape[0] = 2;
  return Tensor::of<float>(shape, std::span<const float>(values));
}

TEST(Streaming, DoesNotDependOnHowSamplesAreCut) {
  const Tensor left = Tensor::of<float>({1, 2, 2, 2}, {1, 1, 0, 0, 0, 0, 1, 1});
  const Tensor right = Tensor::of<float>({1, 2, 2, 2}, {1, 0, 0, 0, 0, 1, 1, 1});
  struct Case {
    const char* name;
    Tensor got_a, want_a, got_b, want_b;
  };
  const std::vector<Case> cases = {
      {"box_f1", rows(0, 0.1F), rows(0), rows(39), rows(5)},
      {"map", rows(0, 0.1F), rows(0), rows(39), rows(5)},
      {"iou", right, left, left, left},
      {"ctc", steps({0, 1, 1}), steps({1, 1, 0}), steps({0, 1, 3}), steps({1, 2, 0})}};
  for (const Case& each : cases) {
    const auto whole = make_metric(each.name);
    const auto parts = make_metric(each.name);
    EXPECT_TRUE(std::isnan(whole->value())) << each.name << " of nothing";
    whole->add(both(each.got_a, each.got_b), both(each.want_a, each.want_b));
    parts->add(each.got_a, each.want_a);
    parts->add(each.got_b, each.want_b);
    EXPECT_DOUBLE_EQ(whole->value(), parts->value()) << each.name;
    EXPECT_LT(whole->value(), 100) << each.name;
  }
}

TEST(Correlations, AreOfAllSamples) {
  const auto score = [](const char* name, std::initializer_list<float> a,
                        std::initializer_list<float> b) {
    return value_of(name, Tensor::of<float>({4, 1}, a), Tensor::of<float>({4, 1}, b));
  };
  EXPECT_NEAR(score("pearson", {1, 2, 3, 4}, {2, 4, 6, 8}), 1, 1e-12);
  EXPECT_NEAR(score("pearson", {1, 2, 3, 4}, {8, 6, 4, 2}), -1, 1e-12);
  EXPECT_NEAR(score("spearman", {1, 2, 3, 100}, {1, 4, 5, 6}), 1, 1e-12);
  EXPECT_NEAR(score("spearman", {1, 1, 2, 3}, {1, 1, 2, 3}), 1, 1e-12);
  EXPECT_LT(score("pearson", {1, 2, 3, 100}, {1, 4, 5, 6}), 0.9);
  EXPECT_TRUE(fits("spearman", Tensor::zeros(DType::Float32, {4, 1})));
}

TEST(Fitting, AgreementIsForClassScores) {
  EXPECT_TRUE(fits("agreement", Tensor::zeros(DType::Float32, {4, 10})));
  EXPECT_TRUE(fits("agreement", Tensor::zeros(DType::Float32, {4, 10, 1, 1})));
  EXPECT_FALSE(fits("agreement", Tensor::zeros(DType::Float32, {4, 10, 7, 7})));
  EXPECT_FALSE(fits("agreement", Tensor::zeros(DType::Float32, {4, 1})));
  EXPECT_TRUE(fits("sqnr", Tensor::zeros(DType::Float32, {4, 10, 7, 7})));
  EXPECT_FALSE(fits("agreement", Tensor::of<float>({2, 2}, {0.6F, -0.8F, 1, 0}))) << "embeddings";
  EXPECT_TRUE(fits("agreement", Tensor::of<float>({2, 2}, {0, 1, 1, 0}))) << "sure of its class";
}

TEST(Custom, SeesAllSamplesAtOnce) {
  const auto metric =
      make_metric(CustomMetric{"rows", [](const Tensor& actual, const Tensor& expected) {
                                 EXPECT_EQ(expected.shape(), Shape({5}));
                                 return static_cast<double>(actual.shape()[0]);
                               }});
  metric->add(Tensor::zeros(DType::Float32, {2, 3}), Tensor::zeros(DType::Int64, {2}));
  metric->add(Tensor::zeros(DType::Float32, {3, 3}), Tensor::zeros(DType::Int64, {3}));
  EXPECT_DOUBLE_EQ(metric->value(), 5);
  metric->add(Tensor::zeros(DType::Float32, {3, 4}), Tensor::zeros(DType::Int64, {3}));
  EXPECT_THROW((void)metric->value(), Error);
}

}  // namespace
}  // namespace quench
