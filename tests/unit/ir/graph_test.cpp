// SPDX-License-Identifier: Apache-2.0
// Graphs: names, order, removal, and the text form.
#include <gtest/gtest.h>

#include "quench/error.h"
#include "unit/passes/builder.h"

namespace quench {
namespace {

using testing::Builder;

Builder small() {
  Builder b;
  b.input("x", {{.value = -1, .symbol = "N"}, {.value = 2}});
  b.numbers("w", {2, 2}, {1, 2, 3, 4});
  b.node("MatMul", {"x", "w"}, {"y"}).name = "product";
  b.node("Relu", {"y"}, {"z"});
  b.output("z");
  return b;
}

std::string error_of(const Model& model) {
  try {
    verify(model);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::BadModel);
    return error.what();
  }
  return "";
}

TEST(Graph, TextFormIsStable) {
  Builder b = small();
  b.node("Clip", {"z"}, {"c"}).set("min", -1.5F);
  EXPECT_EQ(dump(b.model),
            "model ir=8 onnx=17\n"
            "graph  (%x) -> (%z)\n"
            "  value %x: float32[N,2]\n"
            "  const %w: float32[2,2] {1, 2, 3, 4}\n"
            "  %y = MatMul(%x, %w)  # product\n"
            "  %z = Relu(%y)\n"
            "  %c = Clip(%z) {min=-1.5f}\n");
}

TEST(Graph, TakenNamesAreRefusedOrGivenASuffix) {
  Builder b = small();
  Value again;
  again.name = "y";
  EXPECT_THROW(b.graph().add_value(again), Error);
  EXPECT_EQ(b.graph()[b.graph().add_fresh("y")].name, "y_1");
}

TEST(Graph, RenamedValuesAreFoundUnderTheNewNameOnly) {
  Builder b = small();
  const ValueId y = b.id("y");
  b.graph().rename(y, "renamed");
  EXPECT_EQ(b.id("renamed"), y);
  EXPECT_EQ(b.id("y"), kNoValue);
  EXPECT_THROW(b.graph().rename(y, "x"), Error);
}

TEST(Graph, CompactDropsDeadNodesAndTheirValues) {
  Builder b = small();
  replace_uses(b.graph(), b.id("z"), b.id("y"));
  compact(b.graph(), {false, true});
  EXPECT_EQ(b.text(), "MatMul(x,w)->y");
  EXPECT_EQ(b.id("z"), kNoValue);
  EXPECT_EQ(error_of(b.model), "");
}

TEST(Graph, SubgraphsAreCopiedWithTheirNode) {
  Builder b = small();
  Node& node = b.node("If", {"x"}, {"o"});
  node.set("then_branch", GraphBox(Graph()));
  Graph copy = b.graph();
  std::get<GraphBox>(copy.nodes.back().attributes[0].data)->name = "changed";
  EXPECT_EQ(subgraphs(b.graph().nodes.back())[0]->name, "");
}

TEST(Graph, ValuesReadInsideABodyAreInUse) {
  Builder b = small();
  Graph body;
  Value outer;
  outer.name = "y";
  outer.captured = true;
  body.outputs.push_back(body.add_value(outer));
  b.node("If", {"x"}, {"o"}).set("then_branch", GraphBox(body));
  const Uses uses(b.graph());
  EXPECT_EQ(uses.only_consumer(b.id("y")), -1);
  EXPECT_EQ(uses.consumers[static_cast<std::size_t>(b.id("y"))].size(), 2U);
}

TEST(Verify, NamesTheNodeThatReadsTooEarly) {
  Builder b = small();
  std::swap(b.graph().nodes[0], b.graph().nodes[1]);
  const std::string text = error_of(b.model);
  EXPECT_NE(text.find("Relu node that makes 'z'"), std::string::npos) << text;
  EXPECT_NE(text.find("MatMul node 'product'"), std::string::npos) << text;
}

TEST(Verify, RefusesValuesThatNothingMakes) {
  Builder b = small();
  Value orphan;
  orphan.name = "orphan";
  b.graph().outputs.push_back(b.graph().add_value(orphan));
  EXPECT_NE(error_of(b.model).find("'orphan'"), std::string::npos);
}

TEST(Verify, RefusesAValueMadeTwice) {
  Builder b = small();
  b.graph().nodes.push_back(b.graph().nodes[1]);
  EXPECT_NE(error_of(b.model).find("'z', which exists already"), std::string::npos);
}

TEST(Verify, RefusesNestingWithoutEnd) {
  Graph inner;
  for (int depth = 0; depth < 100; ++depth) {
    Graph outer;
    outer.add_node("If", {}, {"o"}).set("then_branch", GraphBox(std::move(inner)));
    inner = std::move(outer);
  }
  Model model;
  model.graph = std::move(inner);
  EXPECT_NE(error_of(model).find("nested"), std::string::npos);
}

}  // namespace
}  // namespace quench
