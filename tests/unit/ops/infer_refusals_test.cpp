// SPDX-License-Identifier: Apache-2.0
// Nodes that no operator can compute: each is refused with a sentence that names it.
#include <gtest/gtest.h>

#include "infer_support.h"

namespace quench::testing {
namespace {

/// The sentence that a node is refused with.
std::string refusal(const OpCase& op) {
  Model model = make_model(op);
  try {
    infer_types(model);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::BadModel) << error.what();
    EXPECT_NE(std::string(error.what()).find("tested"), std::string::npos) << error.what();
    return error.what();
  }
  return "";
}

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(InferRefusals, BiasesThatAreNoVectorOfTheChannels) {
  const std::string x = "float32[N,4,8,8]";
  for (const char* bias : {"float32[1,3,1,1]", "float32[1,3]", "float32[4]", "float32[]"}) {
    for (const char* op : {"Conv", "ConvTranspose"}) {
      const std::string w = std::string(op) == "Conv" ? "float32[3,4,1,1]" : "float32[4,3,1,1]";
      EXPECT_TRUE(mentions(refusal({op, {x, w, bias}, {}, {"?"}}), "bias")) << op << bias;
      EXPECT_EQ(refusal({op, {x, w, "float32[3]"}, {}, {"?"}}), "");
    }
  }
  EXPECT_EQ(refusal({"ConvTranspose",
                     {x, "float32[4,3,1,1]", "float32[12]"},
                     {{"group", std::int64_t{4}}},
                     {"?"}}),
            "");
}

TEST(InferRefusals, WindowsBeyondAllBounds) {
  const std::vector<Argument> conv = {"float32[1,4,8,8]", "float32[3,4,1,1]"};
  for (const std::int64_t size : {std::int64_t{1} << 31, std::int64_t{1} << 62}) {
    for (const char* name : {"strides", "dilations"}) {
      const OpCase op{"Conv", conv, {{name, list({size, size})}}, {"?"}};
      EXPECT_TRUE(mentions(refusal(op), name)) << name << ' ' << size;
    }
    const OpCase pads{"Conv", conv, {{"pads", list({size, size, size, size})}}, {"?"}};
    EXPECT_TRUE(mentions(refusal(pads), "pads")) << size;
    for (const char* pool : {"MaxPool", "AveragePool", "LpPool"}) {
      const OpCase op{pool,
                      {"float32[1,4,8,8]"},
                      {{"kernel_shape", list({2, 2})}, {"strides", list({size, size})}},
                      {"?"}};
      EXPECT_TRUE(mentions(refusal(op), "strides")) << pool << ' ' << size;
    }
  }
}

TEST(InferRefusals, BlocksThatDoNotFit) {
  const std::string x = "float32[1,4,8,8]";
  for (const char* op : {"SpaceToDepth", "DepthToSpace"}) {
    for (const std::int64_t block : {std::int64_t{0}, std::int64_t{3}, std::int64_t{1} << 40}) {
      EXPECT_TRUE(mentions(refusal({op, {x}, {{"blocksize", block}}, {"?"}}), "block")) << op;
    }
    EXPECT_EQ(refusal({op, {x}, {{"blocksize", std::int64_t{2}}}, {"?"}}), "");
  }
}

TEST(InferRefusals, MoreOutputsThanTheOperatorMakes) {
  const std::string x = "float32[1,4,8,8]";
  EXPECT_TRUE(mentions(refusal({"Relu", {x}, {}, {"?", "?"}}), "Relu makes 1 output"));
  EXPECT_TRUE(mentions(refusal({"Dropout", {x}, {}, {"?", "?", "?"}}), "makes 2 outputs"));
  EXPECT_TRUE(
      mentions(refusal({"Conv", {x, std::string("float32[3,4,1,1]")}, {}, {"?", "?"}}), "has 2"));
  EXPECT_EQ(refusal({"Split",
                     {x},
                     {{"axis", std::int64_t{1}}, {"num_outputs", std::int64_t{4}}},
                     {"?", "?", "?", "?"}}),
            "");
  const std::string v = "float32[4]";
  EXPECT_TRUE(mentions(refusal({"BatchNormalization", {x, v, v, v, v}, {}, {"?", "?", "?"}}),
                       "training_mode"));
  EXPECT_EQ(refusal({"BatchNormalization", {x, v, v, v, v}, {}, {"?", "?", "?", "?", "?"}, 9}), "");
}

}  // namespace
}  // namespace quench::testing
