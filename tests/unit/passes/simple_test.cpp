// SPDX-License-Identifier: Apache-2.0
// The runner, constants out of nodes, and nodes that do nothing.
#include "unit/passes/builder.h"

namespace quench::testing {
namespace {

using passes::PassOptions;

TEST(Run, UnknownPassIsNamedWithTheKnownOnes) {
  Builder b;
  try {
    b.run({"lift_constant"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Usage);
    EXPECT_NE(std::string(error.what()).find("lift_constants"), std::string::npos);
  }
}

TEST(Run, EveryPassLeavesAnEmptyGraphAlone) {
  for (const auto list : {passes::all_passes(), exec::rewrites::all_rewrites()}) {
    for (const passes::PassInfo& pass : list) {
      Builder b;
      EXPECT_EQ(b.run({pass.name}).changes, 0U) << pass.name;
      EXPECT_FALSE(pass.summary.empty());
    }
  }
}

Tensor lifted(const std::string& attribute, Attribute::Data data) {
  Builder b;
  b.node("Constant", {}, {"c"}).set(attribute, std::move(data));
  b.node("Identity", {"c"}, {"y"});
  b.output("y");
  EXPECT_EQ(b.run({"lift_constants"}).changes, 1U);
  EXPECT_EQ(b.text(), "Identity(c)->y");
  return *b.graph().constant(b.id("c"));
}

TEST(LiftConstants, EveryForm) {
  EXPECT_EQ(lifted("value", Tensor::of<float>({2}, {1, 2})), Tensor::of<float>({2}, {1, 2}));
  EXPECT_EQ(lifted("value_float", 2.5F), Tensor::scalar(2.5F));
  EXPECT_EQ(lifted("value_int", std::int64_t{7}), Tensor::scalar(std::int64_t{7}));
  EXPECT_EQ(lifted("value_floats", std::vector<float>{1, 2}), Tensor::of<float>({2}, {1, 2}));
  EXPECT_EQ(lifted("value_ints", std::vector<std::int64_t>{3}), Tensor::of<std::int64_t>({1}, {3}));
  EXPECT_EQ(lifted("value_string", std::string("a")), Tensor::strings({}, {"a"}));
  EXPECT_EQ(lifted("value_strings", std::vector<std::string>{"a"}), Tensor::strings({1}, {"a"}));
}

TEST(LiftConstants, SparseStaysAndBodiesAreLifted) {
  Builder b;
  b.constant("cond", Tensor::of<bool>({}, {true}));
  Graph body;
  body.add_node("Constant", {}, {"k"}).set("value_float", 1.0F);
  body.add_node("Constant", {}, {"s"});
  body.nodes.back().set("sparse_value", std::monostate{});
  body.add_node("Add", {body.find("k"), body.find("s")}, {"out"});
  body.outputs.push_back(body.find("out"));
  Node& node = b.node("If", {"cond"}, {"y"});
  node.set("then_branch", GraphBox(body));
  node.set("else_branch", GraphBox(body));
  b.output("y");
  EXPECT_EQ(b.run({"lift_constants"}).changes, 2U);
  const Graph& then = **b.graph().nodes[0].get<GraphBox>("then_branch");
  EXPECT_EQ(Builder::text_of(then), "Constant()->s Add(k,s)->out");
}

/// x -> Relu -> a -> (op) -> b -> Neg -> y, after remove_identity.
std::string around(const std::function<void(Builder&)>& add, std::vector<Dim> shape,
                   const PassOptions& options = {}, std::int64_t opset = 17) {
  Builder b(opset);
  b.input("x", shape);
  b.node("Relu", {"x"}, {"a"});
  b.type("a", std::move(shape));
  add(b);
  b.node("Neg", {"b"}, {"y"});
  b.output("y");
  b.run({"remove_identity"}, options);
  return b.text();
}

const char* const kRemoved = "Relu(x)->a Neg(a)->y";

TEST(RemoveIdentity, WhatDoesNothingGoes) {
  const auto plain = [](const char* op) { return [op](Builder& b) { b.node(op, {"a"}, {"b"}); }; };
  for (const char* op : {"Identity", "Dropout", "Concat", "Sum", "Max", "Min", "Flatten"}) {
    EXPECT_EQ(around(plain(op), dims({-1, 4})), kRemoved) << op;
  }
  EXPECT_EQ(around([](Builder& b) { b.node("Cast", {"a"}, {"b"}).set("to", std::int64_t{1}); },
                   dims({2})),
            kRemoved);
  EXPECT_EQ(around(
                [](Builder& b) {
                  b.node("Transpose", {"a"}, {"b"}).set("perm", std::vector<std::int64_t>{0, 1});
                },
                dims({2, 3})),
            kRemoved);
}

TEST(RemoveIdentity, PadOfZerosInBothForms) {
  const auto pad = [](std::int64_t last, bool attribute) {
    return [=](Builder& b) {
      if (attribute) {
        b.node("Pad", {"a"}, {"b"}).set("pads", std::vector<std::int64_t>{0, last});
      } else {
        b.constant("pads", Tensor::of<std::int64_t>({2}, {0, last}));
        b.node("Pad", {"a", "pads"}, {"b"});
      }
    };
  };
  EXPECT_EQ(around(pad(0, false), dims({2})), kRemoved);
  EXPECT_EQ(around(pad(0, true), dims({2}), {}, 9), kRemoved);
  EXPECT_NE(around(pad(1, false), dims({2})), kRemoved);
  EXPECT_NE(around(pad(1, true), dims({2}), {}, 9), kRemoved);
}

TEST(RemoveIdentity, ReshapeOnlyWhereProvable) {
  const auto reshape = [](std::vector<std::int64_t> target) {
    return [=](Builder& b) {
      b.constant("shape",
                 Tensor::of<std::int64_t>({static_cast<std::int64_t>(target.size())}, target));
      b.node("Reshape", {"a", "shape"}, {"b"});
    };
  };
  EXPECT_EQ(around(reshape({-1, 4}), dims({-1, 4})), kRemoved);
  EXPECT_EQ(around(reshape({0, 4}), dims({-1, 4})), kRemoved);
  EXPECT_EQ(around(reshape({3, 4}), dims({3, 4})), kRemoved);
  EXPECT_NE(around(reshape({1, 4}), dims({-1, 4})), kRemoved);  // n may be 1, or not
  EXPECT_NE(around(reshape({-1, 2}), dims({3, 4})), kRemoved);
  EXPECT_NE(around(reshape({-1}), dims({3, 4})), kRemoved);
}

TEST(RemoveIdentity, WhatDoesSomethingStays) {
  const auto stays = [](const std::function<void(Builder&)>& add, std::int64_t opset = 17) {
    EXPECT_NE(around(add, dims({2, 3}), {}, opset), kRemoved);
  };
  stays([](Builder& b) { b.node("Transpose", {"a"}, {"b"}); });
  stays([](Builder& b) { b.node("Concat", {"a", "a"}, {"b"}).set("axis", std::int64_t{0}); });
  stays([](Builder& b) { b.node("Cast", {"a"}, {"b"}).set("to", std::int64_t{7}); });
  stays([](Builder& b) { b.node("Dropout", {"a"}, {"b"}); }, 6);  // trains unless is_test
  stays([](Builder& b) {
    b.number("ratio", 0.5F).constant("training", Tensor::of<bool>({}, {true}));
    b.node("Dropout", {"a", "ratio", "training"}, {"b"});
  });
  stays([](Builder& b) {
    b.node("Dropout", {"a"}, {"b", "mask"});
    b.output("mask");
  });
}

TEST(RemoveIdentity, DropoutWithRatioInputGoes) {
  EXPECT_EQ(around(
                [](Builder& b) {
                  b.number("ratio", 0.5F);
                  b.node("Dropout", {"a", "ratio"}, {"b"});
                },
                dims({2})),
            kRemoved);
}

TEST(RemoveIdentity, NamesThatMustSurvive) {
  const auto identity = [](Builder& b) { b.node("Identity", {"a"}, {"b"}); };
  EXPECT_EQ(around(identity, dims({2}), {.keep = {"b"}}), "Relu(x)->b Neg(b)->y");
  EXPECT_EQ(around(identity, dims({2}), {.keep = {"a"}}), kRemoved);
  EXPECT_EQ(around(identity, dims({2}), {.keep = {"a", "b"}}),
            "Relu(x)->a Identity(a)->b Neg(b)->y");
}

TEST(RemoveIdentity, GraphOutputsKeepTheirNames) {
  Builder b;
  b.input("x", dims({2}));
  b.node("Relu", {"x"}, {"a"});
  b.node("Identity", {"a"}, {"y1"});
  b.node("Identity", {"a"}, {"y2"});
  b.node("Identity", {"x"}, {"y3"});
  b.output("y1").output("y2").output("y3");
  b.run({"remove_identity"});
  EXPECT_EQ(b.text(), "Relu(x)->y1 Identity(y1)->y2 Identity(x)->y3");
}

TEST(RemoveIdentity, AValueReadInsideABodyKeepsItsName) {
  Builder b;
  b.input("x", dims({2}));
  b.node("Relu", {"x"}, {"a"});
  b.node("Identity", {"a"}, {"b"});
  add_if_reading(b, "b", "y");
  b.output("y");
  b.run({"remove_identity"});
  EXPECT_EQ(b.text(), "Relu(x)->b If(y_cond)->y");
}

TEST(RemoveIdentity, LongChains) {
  Builder b;
  b.input("x", dims({2}));
  b.node("Relu", {"x"}, {"v0"});
  for (int i = 0; i < 20000; ++i) {
    b.node("Identity", {"v" + std::to_string(i)}, {"v" + std::to_string(i + 1)});
  }
  b.output("v20000");
  EXPECT_EQ(b.run({"remove_identity"}).changes, 20000U);
  EXPECT_EQ(b.text(), "Relu(x)->v20000");
}

}  // namespace
}  // namespace quench::testing
