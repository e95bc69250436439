// SPDX-License-Identifier: Apache-2.0
// Every metric: values worked out by hand, streams, and numbers that are none.
#include "quench/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "quench/error.h"

namespace quench {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

double score(std::string_view name, const Tensor& actual, const Tensor& expected) {
  const auto metric = make_metric(name);
  metric->add(actual, expected);
  return metric->value();
}

Tensor rows(Shape shape, std::initializer_list<float> values) {
  return Tensor::of<float>(std::move(shape), values);
}

Tensor labels(std::initializer_list<std::int64_t> values) {
  return Tensor::of<std::int64_t>({static_cast<std::int64_t>(values.size())}, values);
}

TEST(Metrics, ListAndFactoryAgree) {
  std::set<std::string_view> names;
  for (const MetricInfo& info : all_metrics()) {
    EXPECT_NE(make_metric(info.name), nullptr);
    EXPECT_FALSE(info.summary.empty());
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
  }
  for (const char* name : {"top1", "top5", "cosine", "sqnr", "agreement", "mse", "max_abs"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
  try {
    make_metric("cosin");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Usage);
    EXPECT_NE(std::string(error.what()).find("'cosine'?"), std::string::npos) << error.what();
  }
}

TEST(Top, CountsLabelsAmongTheLargest) {
  const Tensor scores = rows({2, 6}, {0, 1, 2, 3, 4, 5, 5, 4, 3, 2, 1, 0});
  EXPECT_EQ(score("top1", scores, labels({5, 0})), 100);
  EXPECT_EQ(score("top1", scores, labels({5, 1})), 50);
  EXPECT_EQ(score("top5", scores, labels({1, 4})), 100);
  EXPECT_EQ(score("top5", scores, labels({0, 5})), 0);
  EXPECT_EQ(score("top1", scores.reshaped({2, 6, 1, 1}), labels({5, 1})), 50);
  EXPECT_EQ(score("top1", rows({3}, {0, 2, 1}), labels({1})), 100);
  EXPECT_EQ(score("top5", rows({1, 3}, {0, 2, 1}), labels({0})), 100);
}

TEST(Top, ConstantOrNanOutputsAreNotRight) {
  EXPECT_EQ(score("top1", rows({2, 3}, {1, 1, 1, 1, 1, 1}), labels({0, 2})), 50);
  EXPECT_EQ(score("top1", rows({1, 3}, {0, kNan, 5}), labels({2})), 0);
  EXPECT_EQ(score("top5", rows({1, 3}, {kNan, kNan, kNan}), labels({0})), 0);
  EXPECT_EQ(score("top1", rows({1, 3}, {0, 1, kInf}), labels({2})), 100);
}

TEST(Top, LabelsThatDoNotFitAreErrors) {
  EXPECT_THROW(score("top1", rows({1, 3}, {0, 1, 2}), labels({3})), Error);
  EXPECT_THROW(score("top1", rows({1, 3}, {0, 1, 2}), labels({-1})), Error);
  EXPECT_THROW(score("top1", rows({2, 3}, {0, 1, 2, 0, 1, 2}), labels({1})), Error);
}

TEST(Cosine, IsTheMeanOverSamples) {
  const Tensor expected = rows({2, 2}, {1, 0, 1, 1});
  EXPECT_NEAR(score("cosine", rows({2, 2}, {1, 1, 2, 2}), expected), (std::sqrt(0.5) + 1) / 2,
              1e-12);
  EXPECT_EQ(score("cosine", rows({1, 2}, {-3, 0}), rows({1, 2}, {1, 0})), -1);
  EXPECT_EQ(score("cosine", rows({1, 2}, {0, 0}), rows({1, 2}, {0, 0})), 1);
  EXPECT_EQ(score("cosine", rows({1, 2}, {0, 0}), rows({1, 2}, {1, 0})), 0);
}

TEST(Sqnr, IsInDecibelOverAllElements) {
  // Signal 100 + 100, noise 1 + 1.
  EXPECT_NEAR(score("sqnr", rows({2, 1}, {11, 9}), rows({2, 1}, {10, 10})), 20, 1e-9);
  EXPECT_EQ(score("sqnr", rows({1, 1}, {10}), rows({1, 1}, {10})), kInf);
}

TEST(Agreement, IsThePercentageOfEqualChoices) {
  const Tensor expected = rows({4, 2}, {0, 1, 0, 1, 1, 0, 1, 0});
  EXPECT_EQ(score("agreement", rows({4, 2}, {0, 9, 9, 0, 2, 1, kNan, 0}), expected), 50);
}

TEST(Errors, MeanSquareAndLargest) {
  const Tensor expected = rows({2, 2}, {1, 2, 3, 4});
  const Tensor actual = rows({2, 2}, {1, 2, 3, 7});
  EXPECT_EQ(score("mse", actual, expected), 9.0 / 4);
  EXPECT_EQ(score("max_abs", actual, expected), 3);
  EXPECT_EQ(score("max_abs", Tensor::of<std::int64_t>({1}, {1LL << 40}),
                  Tensor::of<std::int64_t>({1}, {(1LL << 40) + 1})),
            1);
}

TEST(Reference, NanNeverScoresAsPerfect) {
  const Tensor expected = rows({1, 3}, {1, 2, 3});
  for (const float bad : {kNan, kInf, -kInf}) {
    const Tensor actual = rows({1, 3}, {1, 2, bad});
    EXPECT_EQ(score("cosine", actual, expected), 0) << bad;
    EXPECT_EQ(score("sqnr", actual, expected), -kInf) << bad;
    EXPECT_EQ(score("mse", actual, expected), kInf) << bad;
    EXPECT_EQ(score("max_abs", actual, expected), kInf) << bad;
  }
  // Where the reference has it, too, it is no error.
  const Tensor special = rows({1, 3}, {kNan, -kInf, 3});
  EXPECT_EQ(score("cosine", special, special), 1);
  EXPECT_EQ(score("mse", special, special), 0);
  EXPECT_EQ(score("max_abs", special, special), 0);
  EXPECT_EQ(score("sqnr", special, special), kInf);
}

TEST(Reference, ShapesMustFit) {
  for (const char* name : {"cosine", "sqnr", "agreement", "mse", "max_abs"}) {
    EXPECT_THROW(score(name, rows({1, 2}, {1, 2}), rows({1, 3}, {1, 2, 3})), Error) << name;
    EXPECT_THROW(score(name, rows({1, 2}, {1, 2}), rows({2, 1}, {1, 2})), Error) << name;
  }
}

/// A decoder in a loop may stop sooner or later once it is quantised.
TEST(Reference, LengthsMayDifferBetweenSamplesAndClasses) {
  const Tensor expected = rows({1, 2, 2}, {3, 0, 0, 4});
  const Tensor longer = rows({1, 3, 2}, {3, 0, 0, 4, 9, 9});
  const Tensor shorter = rows({1, 1, 2}, {3, 0});
  EXPECT_EQ(score("sqnr", longer, expected), kInf);
  EXPECT_EQ(score("mse", shorter, expected), 4) << "what is missing is zero";
  EXPECT_NEAR(score("cosine", shorter, expected), 0.6, 1e-6);
  EXPECT_THROW(score("sqnr", rows({1, 2, 1}, {3, 4}), expected), Error) << "other classes";
  EXPECT_THROW(score("sqnr", rows({2, 1, 2}, {3, 0, 0, 4}), expected), Error) << "other samples";
}

TEST(Streaming, DoesNotDependOnHowSamplesAreCut) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  constexpr std::int64_t kRows = 24;
  constexpr std::int64_t kClasses = 10;
  std::vector<float> a(kRows * kClasses);
  std::vector<float> e(a.size());
  std::vector<std::int64_t> y(kRows);
  for (float& x : e) x = normal(random);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = e[i] + 0.3F * normal(random);
  for (std::int64_t& label : y) label = static_cast<std::int64_t>(random() % kClasses);
  const std::set<std::string_view> of_a_form = {"box_f1", "map", "iou",
                                                "ctc"};  // task_metrics_test
  for (const MetricInfo& info : all_metrics()) {
    if (of_a_form.contains(info.name)) continue;
    const auto whole = make_metric(info.name);
    const auto parts = make_metric(info.name);
    EXPECT_TRUE(std::isnan(whole->value())) << info.name << " of nothing";
    const auto add = [&](Metric& metric, std::int64_t begin, std::int64_t count) {
      const auto first = static_cast<std::size_t>(begin);
      const auto size = static_cast<std::size_t>(count);
      const auto part = [&](const std::vector<float>& from) {
        return Tensor::of<float>({count, kClasses},
                                 std::span(from).subspan(first * kClasses, size * kClasses));
      };
      const auto of_labels = std::span<const std::int64_t>(y).subspan(first, size);
      metric.add(part(a),
                 info.needs_labels ? Tensor::of<std::int64_t>({count}, of_labels) : part(e));
    };
    add(*whole, 0, kRows);
    for (std::int64_t at = 0; at < kRows;) {
      const std::int64_t count =
          std::min<std::int64_t>(kRows - at, static_cast<std::int64_t>(random() % 7) + 1);
      add(*parts, at, count);
      at += count;
    }
    EXPECT_NEAR(whole->value(), parts->value(), 1e-9 * std::abs(whole->value())) << info.name;
  }
}

TEST(Streaming, OtherTypesAreComparedToo) {
  const Tensor a = Tensor::of<std::uint8_t>({1, 2}, {1, 200});
  EXPECT_EQ(score("max_abs", a, Tensor::of<float>({1, 2}, {1, 198})), 2);
  EXPECT_EQ(score("agreement", a, Tensor::of<double>({1, 2}, {1, 198})), 100);
}

}  // namespace
}  // namespace quench
