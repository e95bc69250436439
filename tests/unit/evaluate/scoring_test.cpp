// SPDX-License-Identifier: Apache-2.0
// Which outputs are held against each other, and by which metrics.
#include "evaluate/scoring.h"

#include <gtest/gtest.h>

#include "quench/error.h"

namespace quench {
namespace {

std::vector<Value> values(std::initializer_list<const char*> names) {
  std::vector<Value> result;
  for (const char* name : names) result.emplace_back().name = name;
  return result;
}

std::string paired(const std::vector<Value>& a, const std::vector<Value>& b,
                   const std::string& only = "") {
  std::string text;
  for (const OutputPair& pair : pair_outputs(a, b, only)) {
    text += pair.actual + "-" + pair.expected + " ";
  }
  return text;
}

TEST(PairOutputs, ByNameWhateverTheOrder) {
  EXPECT_EQ(paired(values({"a", "b"}), values({"b", "a", "c"})), "a-a b-b ");
}

TEST(PairOutputs, ByPlaceWhenNoNameAgrees) {
  EXPECT_EQ(paired(values({"a", "b"}), values({"x", "y"})), "a-x b-y ");
}

TEST(PairOutputs, OnlyTheWantedOne) {
  EXPECT_EQ(paired(values({"a", "b"}), values({"b", "a"}), "b"), "b-b ");
  EXPECT_THROW(paired(values({"a", "b"}), values({"b", "a"}), "c"), Error);
}

TEST(PairOutputs, NothingInCommonIsAnError) {
  EXPECT_THROW(paired(values({"a"}), values({"x", "y"})), Error);
}

TEST(SortMetrics, TellsLabelsFromReference) {
  const MetricChoice choice = sort_metrics({"top1", "cosine", "top5", "sqnr"});
  EXPECT_EQ(choice.with_labels, (std::vector<std::string>{"top1", "top5"}));
  EXPECT_EQ(choice.with_reference, (std::vector<std::string>{"cosine", "sqnr"}));
  EXPECT_THROW(sort_metrics({"top7"}), Error);
}

TEST(ScoreCard, ErrorsNameTheOutput) {
  ScoreCard card("scores", {"cosine"});
  try {
    card.add(Tensor::of<float>({1, 2}, {1, 2}), Tensor::of<float>({1, 3}, {1, 2, 3}));
    FAIL() << "shapes differ";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("'scores'"), std::string::npos);
  }
}

}  // namespace
}  // namespace quench
