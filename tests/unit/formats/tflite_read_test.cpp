// SPDX-License-Identifier: Apache-2.0
// What TFLite files become, and what is said of those that are damaged or not understood.
#include <gtest/gtest.h>

#include <algorithm>

#include "formats/tflite/schema_generated.h"
#include "quench/error.h"
#include "support/paths.h"
#include "unit/formats/tflite_builder.h"

namespace quench::testing {
namespace {

std::ptrdiff_t count(const Model& model, std::string_view op_type) {
  return std::ranges::count(model.graph.nodes, op_type, &Node::op_type);
}

const Node& first(const Model& model, std::string_view op_type) {
  return *std::ranges::find(model.graph.nodes, op_type, &Node::op_type);
}

/// What reading says; "" where it does not fail.
std::string complaint(const std::string& bytes) {
  try {
    (void)TfliteBuilder::read(bytes);
  } catch (const Error& error) {
    EXPECT_NE(error.kind(), ErrorKind::Internal);
    return error.what();
  }
  return "";
}

TEST(TfliteRead, ConvolutionPadsAsSameDoes) {
  const Model model = one_conv().read();
  const Node& conv = first(model, "Conv");
  EXPECT_EQ(conv.get_ints("pads"), (std::vector<std::int64_t>{1, 1, 1, 1}));
  EXPECT_EQ(conv.get_ints("strides"), (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(model.graph.constant(conv.inputs[1])->shape(), (Shape{4, 2, 3, 3}));
  EXPECT_EQ(count(model, "Relu"), 1);
  EXPECT_EQ(*model.graph[model.graph.outputs[0]].type.static_shape(), (Shape{1, 3, 3, 4}));
}

TEST(TfliteRead, NoTransposeIsLeftBetweenLayers) {
  TfliteBuilder builder;
  const int x = builder.tensor("x", {1, 8, 8, 4});
  const int w = builder.constant("w", counting({4, 3, 3, 4}));
  const int b = builder.constant("b", counting({4}));
  const int a = builder.tensor("a", {1, 8, 8, 4});
  const int scale = builder.constant("scale", counting({4}));
  const int scaled = builder.tensor("scaled", {1, 8, 8, 4});
  const int joined = builder.tensor("joined", {1, 8, 8, 8});
  const int axes = builder.constant("axes", Tensor::of<std::int32_t>({2}, {1, 2}));
  const int mean = builder.tensor("mean", {1, 1, 1, 8});
  const int y = builder.tensor("y", {1, 8});
  const int shape = builder.constant("shape", Tensor::of<std::int32_t>({2}, {1, 8}));
  builder.op("CONV_2D", {x, w, b}, {a}, conv_options(true, 1));
  builder.op("MUL", {a, scale}, {scaled});
  builder.op("CONCATENATION", {a, scaled}, {joined}, {number("axis", 3)});
  builder.op("MEAN", {joined, axes}, {mean}, {number("keep", 1)});
  builder.op("RESHAPE", {mean, shape}, {y});
  builder.program.inputs = {x};
  builder.program.outputs = {y};
  const Model model = builder.read();
  ASSERT_EQ(count(model, "Transpose"), 1);
  EXPECT_EQ(first(model, "Transpose").inputs[0], model.graph.inputs[0]);
  EXPECT_EQ(first(model, "Concat").get_int("axis", -1), 1);
}

TEST(TfliteRead, PaddingAndDilationBecomeTheConvolutions) {
  TfliteBuilder builder;
  const int x = builder.tensor("x", {1, 8, 8, 2});
  const int pads =
      builder.constant("pads", Tensor::of<std::int32_t>({4, 2}, {0, 0, 1, 2, 3, 4, 0, 0}));
  const int padded = builder.tensor("padded", {1, 11, 15, 2});
  const int w = builder.constant("w", counting({4, 3, 3, 2}));
  const int first_result = builder.tensor("r", {1, 9, 13, 4});
  builder.op("PAD", {x, pads}, {padded});
  builder.op("CONV_2D", {padded, w, -1}, {first_result}, conv_options(false, 1));
  builder.program.inputs = {x};
  builder.program.outputs = {first_result};
  const Model model = builder.read();
  EXPECT_EQ(count(model, "Pad"), 0);
  EXPECT_EQ(first(model, "Conv").get_ints("pads"), (std::vector<std::int64_t>{1, 3, 2, 4}));
  EXPECT_EQ(*model.graph[model.graph.outputs[0]].type.static_shape(), (Shape{1, 9, 13, 4}));
}

TfliteBuilder quantized_conv(DType dtype, const Tensor& weight, std::int64_t zero) {
  TfliteBuilder builder;
  const int x = builder.quantized("x", {1, 4, 4, 2}, 0.5F, 3, dtype);
  const int w = builder.constant("w", weight);
  builder.program.tensors.back().quantization = {.scale = {0.25F}, .zero_point = {zero}, .axis = 0};
  const int b = builder.constant("b", Tensor::of<std::int32_t>({1}, {7}));
  builder.program.tensors.back().quantization = {.scale = {0.125F}, .zero_point = {0}, .axis = 0};
  const int y = builder.quantized("y", {1, 4, 4, 1}, 2.0F, dtype == DType::Int8 ? -128 : 0, dtype);
  builder.op("CONV_2D", {x, w, b}, {y}, conv_options(true, 1, 1));
  builder.program.inputs = {x};
  builder.program.outputs = {y};
  return builder;
}

TEST(TfliteRead, QuantisedLayersKeepTheirIntegersAndScales) {
  const Tensor weight = Tensor::of<std::int8_t>({1, 1, 1, 2}, {-7, 100});
  const Model model = quantized_conv(DType::Int8, weight, 0).read();
  const Uses uses(model.graph);
  const Node& conv = first(model, "Conv");
  const auto maker = [&](ValueId id) -> const Node& {
    return model.graph.nodes[static_cast<std::size_t>(uses.producer[static_cast<std::size_t>(id)])];
  };
  for (const ValueId input : conv.inputs) EXPECT_EQ(maker(input).op_type, "DequantizeLinear");
  const Node& w = maker(conv.inputs[1]);
  EXPECT_EQ(model.graph.constant(w.inputs[0])->data<std::int8_t>()[1], 100);
  EXPECT_EQ(model.graph.constant(w.inputs[1])->data<float>()[0], 0.25F);
  EXPECT_EQ(model.graph.constant(maker(conv.inputs[2]).inputs[0])->data<std::int32_t>()[0], 7);
  // Its integers begin at zero, which is what the fused Relu would do.
  EXPECT_EQ(count(model, "Relu"), 0);
  EXPECT_EQ(model.graph[model.graph.outputs[0]].type.dtype, DType::Int8);
}

TEST(TfliteRead, UnsignedWeightsBecomeSignedWhereTheyFit) {
  const Tensor fits = Tensor::of<std::uint8_t>({1, 1, 1, 2}, {1, 250});
  EXPECT_EQ(count(quantized_conv(DType::UInt8, fits, 128).read(), "Conv"), 1);
  const Model model = quantized_conv(DType::UInt8, fits, 128).read();
  const ValueId w = model.graph.find("w");
  ASSERT_NE(w, kNoValue);
  EXPECT_EQ(model.graph.constant(w)->dtype(), DType::Int8);
  EXPECT_EQ(model.graph.constant(w)->data<std::int8_t>()[1], 122);
  const Model kept = quantized_conv(DType::UInt8, fits, 3).read();
  EXPECT_EQ(kept.graph.constant(kept.graph.find("w"))->dtype(), DType::UInt8);
}

TEST(TfliteRead, HalfPrecisionWeightsBecomeFloats) {
  TfliteBuilder builder;
  const int x = builder.tensor("x", {1, 3});
  const int half = builder.constant("half", convert(counting({2, 3}), DType::Float16));
  const int w = builder.tensor("w", {2, 3});
  const int y = builder.tensor("y", {1, 2});
  builder.op("DEQUANTIZE", {half}, {w});
  builder.op("FULLY_CONNECTED", {x, w, -1}, {y});
  builder.program.inputs = {x};
  builder.program.outputs = {y};
  const Model model = builder.read();
  EXPECT_EQ(model.graph.constant(first(model, "Gemm").inputs[1])->dtype(), DType::Float32);
}

TEST(TfliteRead, UnknownOperatorsAreNamedTogether) {
  TfliteBuilder builder = one_conv();
  const int y = builder.program.outputs[0];
  const int z = builder.tensor("z", {1, 3, 3, 4});
  const int last = builder.tensor("last", {1, 3, 3, 4});
  builder.op("SVDF", {y}, {z});
  builder.op("MyOwnOperator", {z}, {last});
  builder.program.outputs = {last};
  const std::string message = complaint(builder.bytes());
  EXPECT_NE(message.find("SVDF"), std::string::npos) << message;
  EXPECT_NE(message.find("custom operator 'MyOwnOperator'"), std::string::npos) << message;
}

TEST(TfliteRead, PackedWeightsAreRefused) {
  TfliteBuilder builder;
  const int x = builder.tensor("x", {1, 3});
  const int w = builder.constant("w", counting({2, 3}));
  const int y = builder.tensor("y", {1, 2});
  builder.op("FULLY_CONNECTED", {x, w, -1}, {y}, {number("weights_format", 1)});
  builder.program.inputs = {x};
  builder.program.outputs = {y};
  EXPECT_NE(complaint(builder.bytes()).find("packed"), std::string::npos);
}

TEST(TfliteRead, SparseWeightsAreRefusedByName) {
  namespace schema = tflite::schema;
  flatbuffers::FlatBufferBuilder out;
  const auto sparsity = schema::CreateAny(out);
  const std::vector<std::int32_t> shape = {2, 3};
  const auto tensor = schema::CreateTensorDirect(out, &shape, 0, 0, "pruned", 0, false, sparsity);
  const std::vector<flatbuffers::Offset<schema::Tensor>> tensors = {tensor};
  const std::vector<std::int32_t> none;
  const auto graph = schema::CreateSubGraphDirect(out, &tensors, &none, &none);
  const std::vector<flatbuffers::Offset<schema::SubGraph>> graphs = {graph};
  const std::vector<flatbuffers::Offset<schema::Buffer>> buffers = {schema::CreateBuffer(out)};
  constexpr std::uint32_t kVersion = 3;
  schema::FinishModelBuffer(
      out, schema::CreateModelDirect(out, kVersion, nullptr, &graphs, "", &buffers));
  const std::string message =
      complaint(std::string(out.GetBufferPointer(), out.GetBufferPointer() + out.GetSize()));
  EXPECT_NE(message.find("'pruned'"), std::string::npos) << message;
  EXPECT_NE(message.find("sparse"), std::string::npos) << message;
}

TEST(TfliteRead, IndicesOutsideAreToldWithTheOperator) {
  TfliteBuilder builder = one_conv();
  builder.program.ops[0].inputs[1] = 99;
  const std::string message = complaint(builder.bytes());
  EXPECT_NE(message.find("CONV_2D"), std::string::npos) << message;
  EXPECT_NE(message.find("tensor 99"), std::string::npos) << message;
}

TEST(TfliteRead, DataThatDoNotFitTheirShapeAreTold) {
  TfliteBuilder builder = one_conv();
  builder.program.tensors[1].shape = {4, 3, 3, 3};
  EXPECT_NE(complaint(builder.bytes()).find("'w'"), std::string::npos);
}

TEST(TfliteRead, CutAndBrokenFilesAreRefused) {
  const std::string whole = one_conv().bytes();
  for (std::size_t size = 8; size < whole.size(); size += 4) {
    EXPECT_NE(complaint(whole.substr(0, size)), "") << size;
  }
  for (std::size_t at = 8; at < whole.size(); ++at) {
    std::string broken = whole;
    broken[at] = static_cast<char>(broken[at] ^ 0x55);
    (void)complaint(broken);  // whatever it says, it says it
  }
}

TEST(TfliteRead, RealFilesHaveTransposesAtTheirEdgesOnly) {
  for (const char* name :
       {"resnet8_cifar10_float", "resnet8_cifar10_int8", "vww_96_int8", "selfie_segmentation"}) {
    const auto path = shared_dir() / "models/tflite" / (std::string(name) + ".tflite");
    if (!std::filesystem::exists(path)) GTEST_SKIP() << "no shared folder";
    const Model model = load(path.string());
    EXPECT_EQ(count(model, "Transpose"), 1) << name;
    EXPECT_EQ(first(model, "Transpose").inputs[0], model.graph.inputs[0]) << name;
  }
}

}  // namespace
}  // namespace quench::testing
