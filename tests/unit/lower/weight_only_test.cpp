// SPDX-License-Identifier: Apache-2.0
// Integer weights in a graph: where they are dequantised, and what becomes of the float ones.
#include "lower/weight_only.h"

#include "unit/plan/networks.h"

namespace quench::lower {
namespace {

using testing::Builder;

Tensor ramp(Shape shape) {
  Tensor result = Tensor::zeros(DType::Float32, std::move(shape));
  float next = -1;
  for (float& value : result.mutable_data<float>()) value = next += 0.125F;
  return result;
}

/// Every weight of a model, each with the grid that its first reader suggests.
std::string stored(Builder& net, quant::WeightSpec spec) {
  infer_types(net.model);
  const plan::WeightSites found = plan::find_weights(net.graph(), {});
  std::map<ValueId, std::vector<plan::WeightSite>> by_value;
  for (const plan::WeightSite& site : found.sites)
    by_value[site.value_in(net.graph())].push_back(site);
  WeightWriter writer(net.model);
  for (const auto& [value, sites] : by_value) {
    spec.axis = spec.block > 0 ? sites.front().sum_axis : sites.front().channel_axis;
    writer.replace(sites, quant::quantize_weight(*net.graph().constant(value), spec, 1));
  }
  writer.finish();
  return net.text();
}

const Node& dequantize(Builder& net) {
  for (const Node& node : net.graph().nodes) {
    if (node.op_type == "DequantizeLinear") return node;
  }
  throw std::runtime_error("no DequantizeLinear");
}

TEST(WeightOnly, ConvolutionsReadDequantisedWeights) {
  Builder net(11);
  net.input("x", testing::dims({1, 2, 4, 4})).constant("w", ramp({3, 2, 1, 1}));
  net.node("Conv", {"x", "w"}, {"y"});
  net.output("y");
  EXPECT_EQ(stored(net, {.bits = 8, .symmetric = true}),
            "DequantizeLinear(w_quantized,w_scale)->w_DequantizeLinear_Output "
            "Conv(x,w_DequantizeLinear_Output)->y");
  EXPECT_EQ(dequantize(net).get_int("axis", -1), 0);
  EXPECT_EQ(net.model.opset(), 13);
  EXPECT_EQ(net.id("w"), kNoValue) << "the float weight is gone";
}

TEST(WeightOnly, AxesFollowTheOperator) {
  const auto axis_of = [](const std::string& op, Shape shape, auto&& set) {
    Builder net;
    net.input("x", testing::dims({1, 2, 4, 4})).constant("w", ramp(std::move(shape)));
    if (op == "Gemm" || op == "MatMul") net.type("x", testing::dims({5, 4}));
    set(net.node(op, {"x", "w"}, {"y"}));
    net.output("y");
    stored(net, {.bits = 8});
    return dequantize(net).get_int("axis", -1);
  };
  const auto plain = [](Node&) {};
  EXPECT_EQ(axis_of("Conv", {3, 2, 1, 1}, plain), 0);
  EXPECT_EQ(axis_of("ConvTranspose", {2, 3, 2, 2}, plain), 1);
  EXPECT_EQ(axis_of("ConvTranspose", {2, 1, 2, 2},
                    [](Node& node) { node.set("group", std::int64_t{2}); }),
            0);
  EXPECT_EQ(axis_of("Gemm", {4, 6}, plain), 1);
  EXPECT_EQ(axis_of("Gemm", {6, 4}, [](Node& node) { node.set("transB", std::int64_t{1}); }), 0);
  EXPECT_EQ(axis_of("MatMul", {4, 6}, plain), 1);
}

TEST(WeightOnly, BlocksAndFourBitsRaiseTheOpset) {
  Builder net(13);
  net.input("x", testing::dims({5, 64})).constant("w", ramp({64, 6}));
  net.node("MatMul", {"x", "w"}, {"y"});
  net.output("y");
  stored(net, {.bits = 4, .block = 32});
  EXPECT_EQ(net.model.opset(), 21);
  EXPECT_GE(net.model.ir_version, 10);
  EXPECT_EQ(dequantize(net).get_int("axis", -1), 0);
  EXPECT_EQ(dequantize(net).get_int("block_size", -1), 32);
  EXPECT_EQ(net.graph().constant(net.id("w_quantized"))->dtype(), DType::Int4);
  EXPECT_EQ(net.graph().constant(net.id("w_scale"))->shape(), (Shape{2, 6}));
}

TEST(WeightOnly, EmbeddingsAreGatheredAsIntegers) {
  Builder net;
  net.input("i", testing::dims({5}), DType::Int64).constant("table", ramp({10, 4}));
  net.node("Gather", {"table", "i"}, {"y"});
  net.output("y");
  EXPECT_EQ(stored(net, {.bits = 8, .symmetric = true}),
            "Gather(table_quantized,i)->y_integers Cast(y_integers)->y_integers_float "
            "Gather(table_scale_rows,i)->y_scale Mul(y_integers_float,y_scale)->y");
  EXPECT_EQ(net.graph().constant(net.id("table_scale_rows"))->shape(), (Shape{10, 1}));
  EXPECT_EQ(net.id("table"), kNoValue);
}

TEST(WeightOnly, RowsOnOneGridAreNotDequantisedByOneNode) {
  Builder net;
  net.input("i", testing::dims({5}), DType::Int64).constant("table", ramp({10, 4}));
  net.node("Gather", {"table", "i"}, {"y"});
  net.output("y");
  infer_types(net.model);
  WeightWriter writer(net.model);
  writer.replace(plan::find_weights(net.graph(), {}).sites,
                 quant::quantize_weight(*net.graph().constant(net.id("table")),
                                        {.bits = 8, .symmetric = true}, 1));
  writer.finish();
  EXPECT_EQ(net.text(),
            "Gather(table_quantized,i)->y_integers Cast(y_integers)->y_integers_float "
            "Mul(y_integers_float,table_scale)->y");
}

TEST(WeightOnly, FourBitTablesAreDequantisedFirst) {
  Builder net;
  net.input("i", testing::dims({5}), DType::Int64).constant("table", ramp({10, 4}));
  net.node("Gather", {"table", "i"}, {"y"});
  net.output("y");
  EXPECT_EQ(stored(net, {.bits = 4, .symmetric = true}),
            "DequantizeLinear(table_quantized,table_scale)->table_DequantizeLinear_Output "
            "Gather(table_DequantizeLinear_Output,i)->y");
}

TEST(WeightOnly, SharedWeightsAreStoredOnceAndKeptForOthers) {
  Builder net;
  net.input("x", testing::dims({4, 4})).constant("w", ramp({4, 4}));
  net.node("MatMul", {"x", "w"}, {"a"});
  net.node("MatMul", {"a", "w"}, {"b"});
  net.node("Add", {"b", "w"}, {"y"});
  net.output("y");
  const std::string text = stored(net, {.bits = 8, .symmetric = true});
  EXPECT_EQ(text.find("w_quantized_1"), std::string::npos) << text;
  EXPECT_NE(text.find("Add(b,w)->y"), std::string::npos) << text;
}

TEST(WeightOnly, WeightsThatInnerGraphsReadStay) {
  Builder net;
  net.input("x", testing::dims({4, 4})).constant("w", ramp({4, 4}));
  net.node("MatMul", {"x", "w"}, {"a"});
  testing::add_if_reading(net, "w", "b");
  net.node("Add", {"a", "b"}, {"y"});
  net.output("y");
  stored(net, {.bits = 8});
  EXPECT_NE(net.id("w"), kNoValue);
}

TEST(WeightOnly, HalfPrecisionStaysHalf) {
  Builder net;
  net.input("x", testing::dims({4, 4}), DType::Float16);
  net.constant("w", convert(ramp({4, 4}), DType::Float16));
  net.node("MatMul", {"x", "w"}, {"y"});
  net.output("y");
  stored(net, {.bits = 8});
  EXPECT_EQ(net.graph()[net.id("y")].type.dtype, DType::Float16);
}

TEST(FindWeights, LeavesOutWhatTheFilterSays) {
  Builder net;
  net.input("x", testing::dims({1, 2, 4, 4})).constant("w", ramp({3, 2, 1, 1}));
  net.node("Conv", {"x", "w"}, {"y"}).name = "conv";
  net.output("y");
  EXPECT_EQ(plan::find_weights(net.graph(), {}).sites.size(), 1U);
  for (const plan::WeightFilter& filter :
       {plan::WeightFilter{.config = {}, .min_size = 6}, {.config = {}, .min_channel = 3}}) {
    const plan::WeightSites found = plan::find_weights(net.graph(), filter);
    EXPECT_TRUE(found.sites.empty());
    ASSERT_EQ(found.refusals.size(), 1U);
    EXPECT_NE(found.refusals[0].reason.find("no more than"), std::string::npos);
  }
  plan::WeightFilter skipping;
  skipping.config.skip_quant_node = {"conv"};
  EXPECT_TRUE(plan::find_weights(net.graph(), skipping).sites.empty());
  skipping.config.skip_quant_node = {"cnov"};
  EXPECT_THROW(plan::find_weights(net.graph(), skipping), Error);
}

}  // namespace
}  // namespace quench::lower
