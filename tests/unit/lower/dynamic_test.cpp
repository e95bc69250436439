// SPDX-License-Identifier: Apache-2.0
// Products on integers whose activations are quantised while the model runs.
#include "lower/dynamic.h"

#include "unit/plan/networks.h"

namespace quench::lower {
namespace {

using testing::Builder;

Builder product(const std::string& op) {
  Builder net;
  net.input("x", testing::dims({5, 3}));
  net.numbers("w", {3, 2}, {1, 2, 3, 4, 5, 6}).numbers("b", {2}, {1, 1});
  if (op == "Gemm") {
    net.node("Gemm", {"x", "w", "b"}, {"y"}).name = "gemm";
  } else {
    net.node("MatMul", {"x", "w"}, {"y"}).name = "product";
  }
  net.output("y");
  return net;
}

std::string written(Builder& net, ActivationScales grids) {
  infer_types(net.model);
  const auto sites = plan::find_weights(net.graph(), {}).sites;
  DynamicWriter writer(net.model, grids, sites);
  const int axis = grids == ActivationScales::Layer ? 1 : -1;
  writer.multiply(sites, quant::quantize_weight(product_matrix(net.graph(), sites.front()),
                                                {.symmetric = true, .axis = axis}, 1));
  writer.finish();
  return net.text();
}

TEST(Dynamic, ProductsTakeTheFormThatIsFused) {
  Builder net = product("MatMul");
  EXPECT_EQ(written(net, ActivationScales::Layer),
            "DynamicQuantizeLinear(x)->x_quantized,x_scale,x_zero_point "
            "MatMulInteger(x_quantized,w_quantized,x_zero_point)->y_sums "
            "Cast(y_sums)->y_float_sums Mul(x_scale,w_scale)->y_scales "
            "Mul(y_float_sums,y_scales)->y");
  EXPECT_EQ(net.graph().constant(net.id("w_scale"))->shape(), Shape{2});
  EXPECT_EQ(net.id("w"), kNoValue);
}

TEST(Dynamic, BiasAndFactorsOfGemmAreKept) {
  Builder net = product("Gemm");
  net.graph().nodes[0].set("alpha", 0.5F);
  net.graph().nodes[0].set("beta", 3.0F);
  const std::string text = written(net, ActivationScales::Layer);
  EXPECT_NE(text.find("Add(y_product,b_scaled)->y"), std::string::npos) << text;
  EXPECT_EQ(*net.graph().constant(net.id("b_scaled")), Tensor::of<float>({2}, {3, 3}));
  EXPECT_FLOAT_EQ(net.graph().constant(net.id("w_scale"))->data<float>()[0], 0.5F * 5 / 127);
}

TEST(Dynamic, TransposedWeightsAreTurned) {
  Builder net = product("Gemm");
  net.graph()[net.id("w")].constant = Tensor::of<float>({2, 3}, {1, 3, 5, 2, 4, 6});
  net.graph()[net.id("w")].type = ValueType::of(*net.graph().constant(net.id("w")));
  net.graph().nodes[0].set("transB", std::int64_t{1});
  written(net, ActivationScales::Layer);
  EXPECT_EQ(net.graph().constant(net.id("w_quantized"))->shape(), (Shape{3, 2}));
}

TEST(Dynamic, ReadersOfOneActivationShareItsIntegers) {
  Builder net;
  net.input("x", testing::dims({5, 3})).numbers("w", {3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  net.node("MatMul", {"x", "w"}, {"a"});
  net.node("MatMul", {"x", "w"}, {"b"});
  net.node("Add", {"a", "b"}, {"y"});
  net.output("y");
  const std::string text = written(net, ActivationScales::Layer);
  EXPECT_EQ(text.find("DynamicQuantizeLinear"), text.rfind("DynamicQuantizeLinear")) << text;
}

/// ONNX Runtime would take a product of row scales for that of whole tensors.
TEST(Dynamic, RowsAreNotTakenForTensors) {
  Builder net = product("MatMul");
  const std::string text = written(net, ActivationScales::Row);
  EXPECT_NE(text.find("Mul(y_float_sums,w_scale)->y_scales Mul(y_scales,x_row_scale)->y"),
            std::string::npos)
      << text;
  EXPECT_EQ(net.graph().constant(net.id("w_scale"))->shape(), Shape{});
}

TEST(Dynamic, SaysWhatStaysInFloat) {
  Builder net;
  net.input("x", testing::dims({1, 2, 4, 4})).numbers("w", {1, 2, 1, 1}, {1, 2});
  net.node("Conv", {"x", "w"}, {"y"});
  net.output("y");
  const auto sites = plan::find_weights(net.graph(), {}).sites;
  ASSERT_EQ(sites.size(), 1U);
  EXPECT_NE(refuse_dynamic(net.graph(), sites[0]).find("matrix products"), std::string::npos);
}

}  // namespace
}  // namespace quench::lower
