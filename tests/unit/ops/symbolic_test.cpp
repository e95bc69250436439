// SPDX-License-Identifier: Apache-2.0
// Arithmetic on symbols: equal sizes must read equal.
#include "ops/symbolic.h"

#include <gtest/gtest.h>

#include <set>

#include "ops/ops.h"

namespace quench::ops {
namespace {

SymInt symbol(const std::string& text) { return SymInt(Dim{-1, text}); }
std::string text(const SymInt& value) {
  return value.number ? std::to_string(*value.number) : value.symbol.empty() ? "?" : value.symbol;
}

TEST(Symbolic, SumsAndProductsFold) {
  const SymInt h = symbol("H");
  EXPECT_EQ(text(h + SymInt(3) - SymInt(3)), "H");
  EXPECT_EQ(text((h + SymInt(1)) * SymInt(2)), "2*H+2");
  EXPECT_EQ(text(h * SymInt(2) * SymInt(3)), "6*H");
  EXPECT_EQ(text(h + h), "2*H");
  EXPECT_EQ(text(h - h), "0");
  EXPECT_EQ(text(h * symbol("W")), text(symbol("W") * h));
  EXPECT_EQ(text(h + symbol("W")), text(symbol("W") + h));
  EXPECT_EQ(text(h * SymInt(0)), "0");
}

TEST(Symbolic, DivisionRoundsDown) {
  const SymInt h = symbol("H");
  EXPECT_EQ(text(floor_div(h * SymInt(4), 2)), "2*H");
  EXPECT_EQ(text(floor_div(h * SymInt(2) + SymInt(5), 2)), "H+2");
  EXPECT_EQ(text(floor_div(h + SymInt(1), 2)), "floor((H+1)/2)");
  EXPECT_EQ(text(floor_div(SymInt(-3), 2)), "-2");
  EXPECT_EQ(text(ceil_div(SymInt(7), 2)), "4");
  EXPECT_EQ(text(floor_div(h, 0)), "?");
}

TEST(Symbolic, OverflowIsUnknown) {
  EXPECT_EQ(text(SymInt(INT64_MAX) + SymInt(1)), "?");
  EXPECT_EQ(text(SymInt(INT64_MAX) * SymInt(2)), "?");
  EXPECT_EQ(text(SymInt(0) - SymInt(INT64_MIN)), "?");
}

TEST(Symbolic, ExpressionsStayShort) {
  SymInt value = symbol("N");
  for (int i = 0; i < 60; ++i) value = (value + SymInt(1)) * value;
  EXPECT_LE(value.symbol.size(), 96U);
}

TEST(Symbolic, QuotientsCancel) {
  const Dims total{{-1, "N"}, {12, {}}, {-1, "H"}};
  EXPECT_EQ(text(quotient(total, Dims{{-1, "H"}, {3, {}}})), "4*N");
  EXPECT_EQ(text(quotient(total, Dims{{-1, "W"}})), "?");
}

TEST(OpTable, NamesAreUniqueAndFound) {
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (const OpInfo& op : all_ops()) {
    EXPECT_TRUE(seen.emplace(op.domain, op.name).second) << op.name;
    EXPECT_EQ(find_op(op.domain, op.name), &op) << op.name;
    EXPECT_TRUE(op.max_inputs < 0 || op.min_inputs <= op.max_inputs) << op.name;
  }
  EXPECT_EQ(find_op("", "Invented"), nullptr);
  EXPECT_EQ(find_op("ai.onnx", "Conv"), find_op("", "Conv"));
}

}  // namespace
}  // namespace quench::ops
