// SPDX-License-Identifier: Apache-2.0
// Which operators between Q/DQ nodes become integer ones.
#include "unit/passes/builder.h"

namespace quench {
namespace {

using testing::Builder;
using testing::dims;

/// x (bytes) -> DQ -> Conv(w by DQ) -> Relu -> Q -> y.
Builder conv(std::uint8_t weight_zero = 128) {
  Builder b;
  b.input("x", dims({1, 2, 4, 4}), DType::UInt8);
  b.number("s", 0.1F).constant("z", Tensor::of<std::uint8_t>({}, {7}));
  b.constant("w", Tensor::of<std::uint8_t>({3, 2, 1, 1}, {1, 2, 3, 4, 5, 6}));
  b.constant("wz", Tensor::of<std::uint8_t>({}, {weight_zero}));
  b.node("DequantizeLinear", {"x", "s", "z"}, {"xr"});
  b.node("DequantizeLinear", {"w", "s", "wz"}, {"wr"});
  b.node("Conv", {"xr", "wr"}, {"c"});
  b.node("Relu", {"c"}, {"r"});
  b.node("QuantizeLinear", {"r", "s", "z"}, {"y"});
  b.output("y");
  return b;
}

TEST(FuseInteger, JoinsALayerWithItsActivation) {
  Builder b = conv();
  b.run({"fuse_integer"});
  EXPECT_EQ(b.text(), "quench.exec.QLinearConv(x,s,z,w,s,wz,s,z)->y");
  EXPECT_EQ(b.graph().nodes[0].get_string("activation", ""), "relu");
}

TEST(FuseInteger, KeepsATap) {
  Builder b = conv();
  passes::PassOptions options;
  options.keep = {"c"};
  b.run({"fuse_integer"}, options);
  EXPECT_NE(b.text().find("QLinearConv(x,s,z,w,s,wz)->c"), std::string::npos) << b.text();
  EXPECT_NE(b.text().find("QuantizeLinear(r,s,z)->y"), std::string::npos) << b.text();
}

TEST(FuseInteger, LeavesWeightsThatAreNotCentred) {
  Builder b = conv(100);
  const std::string before = b.text();
  b.run({"fuse_integer"});
  EXPECT_EQ(b.text(), before);
}

TEST(FuseInteger, MovesBytes) {
  Builder b;
  b.input("x", dims({1, 2, 4, 4}), DType::UInt8);
  b.number("s", 0.1F).constant("z", Tensor::of<std::uint8_t>({}, {7}));
  b.node("DequantizeLinear", {"x", "s", "z"}, {"xr"});
  b.node("Flatten", {"xr"}, {"f"});
  b.node("QuantizeLinear", {"f", "s", "z"}, {"y"});
  b.output("y");
  b.run({"fuse_integer"});
  EXPECT_EQ(b.text(), "Flatten(x)->y");
}

TEST(FuseInteger, MakesATableOfAFunction) {
  Builder b;
  b.input("x", dims({1, 2}), DType::UInt8);
  b.number("s", 0.1F).constant("z", Tensor::of<std::uint8_t>({}, {7}));
  b.node("DequantizeLinear", {"x", "s", "z"}, {"xr"});
  b.node("Sigmoid", {"xr"}, {"f"});
  b.node("QuantizeLinear", {"f", "s", "z"}, {"y"});
  b.output("y");
  b.run({"fuse_integer"});
  EXPECT_EQ(b.text(), "quench.exec.Table(x)->y");
}

/// x (bytes) -> DQ -> HardSigmoid -> Q -> DQ, times the first DQ -> Q -> DQ -> times 3 -> Q.
Builder gated() {
  Builder b;
  b.input("x", dims({1, 2}), DType::UInt8);
  b.number("s", 0.1F).constant("z", Tensor::of<std::uint8_t>({}, {7}));
  b.constant("k", Tensor::of<std::uint8_t>({1}, {37}));
  b.node("DequantizeLinear", {"x", "s", "z"}, {"xr"});
  b.node("HardSigmoid", {"xr"}, {"f"});
  b.node("QuantizeLinear", {"f", "s", "z"}, {"g"});
  b.node("DequantizeLinear", {"g", "s", "z"}, {"gr"});
  b.node("Mul", {"xr", "gr"}, {"m"});
  b.node("QuantizeLinear", {"m", "s", "z"}, {"h"});
  b.node("DequantizeLinear", {"h", "s", "z"}, {"hr"});
  b.node("DequantizeLinear", {"k", "s", "z"}, {"kr"});
  b.node("Mul", {"hr", "kr"}, {"t"});
  b.node("QuantizeLinear", {"t", "s", "z"}, {"y"});
  b.output("y");
  return b;
}

TEST(FuseInteger, MakesOneTableOfAGate) {
  Builder b = gated();
  b.run({"fuse_integer"});
  EXPECT_EQ(b.text(), "quench.exec.Table(x)->y");
}

TEST(FuseInteger, MakesOneTableOfAGateThatClipsBytes) {
  Builder b;
  b.input("x", dims({1, 2}), DType::UInt8);
  b.number("s", 0.1F).constant("z", Tensor::of<std::uint8_t>({}, {30}));
  b.number("gs", 0.1F / 6).constant("gz", Tensor::of<std::uint8_t>({}, {0}));
  b.constant("high", Tensor::of<std::uint8_t>({}, {60}));
  b.node("DequantizeLinear", {"x", "s", "z"}, {"xr"});
  b.node("Clip", {"x", "gz", "high"}, {"g"});
  b.node("DequantizeLinear", {"g", "gs", "gz"}, {"gr"});
  b.node("Mul", {"xr", "gr"}, {"m"});
  b.node("QuantizeLinear", {"m", "s", "z"}, {"y"});
  b.output("y");
  b.run({"fuse_integer"});
  EXPECT_EQ(b.text(), "quench.exec.Table(x)->y");
}

TEST(FuseInteger, LeavesATapOfAGateAValue) {
  Builder b = gated();
  passes::PassOptions options;
  options.keep = {"m"};
  b.run({"fuse_integer"}, options);
  EXPECT_NE(b.text().find("->m"), std::string::npos) << b.text();
  EXPECT_NE(b.text().find("QuantizeLinear(m,s,z)->h"), std::string::npos) << b.text();
}

TEST(FuseInteger, JoinsADynamicProduct) {
  Builder b;
  b.input("x", dims({2, 3}));
  b.constant("w", Tensor::of<std::int8_t>({3, 2}, {1, 2, 3, 4, 5, 6}));
  b.numbers("ws", {2}, {0.1F, 0.2F}).numbers("bias", {2}, {1, 2});
  b.node("DynamicQuantizeLinear", {"x"}, {"q", "qs", "qz"});
  b.node("MatMulInteger", {"q", "w", "qz"}, {"sums"});
  b.node("Cast", {"sums"}, {"real"}).set("to", std::int64_t{1});
  b.node("Mul", {"qs", "ws"}, {"scales"});
  b.node("Mul", {"real", "scales"}, {"product"});
  b.node("Add", {"bias", "product"}, {"y"});
  b.output("y");
  b.type("product", dims({2, 2}));
  b.run({"fuse_integer"});
  EXPECT_EQ(b.text(),
            "DynamicQuantizeLinear(x)->q,qs,qz "
            "quench.exec.MatMulIntegerToFloat(q,w,qs,ws,qz,_,bias_1)->y");
}

}  // namespace
}  // namespace quench
