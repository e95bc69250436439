// SPDX-License-Identifier: Apache-2.0
// One line an operator: what goes in and what inference must say comes out.
#include <gtest/gtest.h>

#include "infer_support.h"

namespace quench::testing {
namespace {

void check(const std::vector<OpCase>& cases) {
  for (const OpCase& each : cases) {
    Model model = make_model(each);
    SCOPED_TRACE(each.op + " opset " + std::to_string(each.opset));
    ASSERT_NO_THROW(infer_types(model));
    for (std::size_t i = 0; i < each.outputs.size(); ++i) {
      EXPECT_EQ(type_of(model, "out" + std::to_string(i)), each.outputs[i]);
    }
  }
}

using std::string;
constexpr std::monostate kNone{};

TEST(InferRules, Elementwise) {
  check({
      {"Relu", {"float32[N,3,?]"}, {}, {"float32[N,3,?]"}},
      {"Add", {"float32[N,1,8]", "float32[4,1]"}, {}, {"float32[N,4,8]"}},
      {"Add", {"float32[N,C]", "float32[N,C]"}, {}, {"float32[N,C]"}},
      {"Add", {"float32[N]", "float32[M]"}, {}, {"float32[?]"}},
      {"Add", {"float32[N]", "float32[8]"}, {}, {"float32[8]"}},
      {"Add",
       {"float32[2,3,4,5]", "float32[3]"},
       {{"axis", std::int64_t{1}}},
       {"float32[2,3,4,5]"},
       6},
      {"Pow", {"float32[N]", "int64[]"}, {}, {"float32[N]"}},
      {"Less", {"int32[N,1]", "int32[1,M]"}, {}, {"bool[N,M]"}},
      {"Not", {"bool[N]"}, {}, {"bool[N]"}},
      {"Sum", {"float32[N,1]", "float32[1]", "float32[1,5]"}, {}, {"float32[N,5]"}},
      {"Where", {"bool[N,1]", "int64[]", "int64[1,7]"}, {}, {"int64[N,7]"}},
      {"Cast", {"float32[N]"}, {{"to", std::int64_t{10}}}, {"float16[N]"}},
      {"CastLike", {"float32[N]", "int8[3]"}, {}, {"int8[N]"}},
      {"Softmax", {"float32[N,10]"}, {{"axis", std::int64_t{1}}}, {"float32[N,10]"}},
      {"PRelu", {"float32[N,3,4]", "float32[3,1]"}, {}, {"float32[N,3,4]"}},
      {"BitwiseXor", {"uint8[N]", "uint8[1]"}, {}, {"uint8[N]"}},
      {"Gelu", {"float16[N]"}, {}, {"float16[N]"}},
  });
}

TEST(InferRules, Convolution) {
  const std::vector<std::pair<string, Attribute::Data>> stride2{{"strides", list({2, 2})},
                                                                {"pads", list({1, 1, 1, 1})}};
  check({
      {"Conv", {"float32[N,3,224,224]", "float32[16,3,3,3]"}, stride2, {"float32[N,16,112,112]"}},
      {"Conv",
       {"float32[N,3,H,W]", "float32[16,3,3,3]"},
       {{"pads", list({1, 1, 1, 1})}},
       {"float32[N,16,H,W]"}},
      {"Conv",
       {"float32[1,3,H,9]", "float32[16,3,3,3]"},
       stride2,
       {"float32[1,16,floor((H+1)/2),5]"}},
      {"Conv",
       {"float32[1,4,9,9]", "float32[8,2,3,3]"},
       {{"group", std::int64_t{2}}, {"dilations", list({2, 2})}},
       {"float32[1,8,5,5]"}},
      {"Conv",
       {"float32[1,3,7,7]", "float32[8,3,3,3]"},
       {{"auto_pad", string("SAME_UPPER")}, {"strides", list({2, 2})}},
       {"float32[1,8,4,4]"}},
      {"Conv", {"float32[...]", "float32[8,3,3,3]"}, {}, {"float32[...]"}},
      {"ConvTranspose",
       {"float32[1,3,5,W]", "float32[3,4,3,3]"},
       {{"strides", list({2, 2})}, {"output_padding", list({1, 1})}},
       {"float32[1,4,12,2*W+2]"}},
      {"ConvTranspose",
       {"float32[1,3,5,5]", "float32[3,4,3,3]"},
       {{"output_shape", list({10, 9})}},
       {"float32[1,4,10,9]"}},
      {"ConvInteger", {"uint8[1,1,3,3]", "uint8[1,1,2,2]"}, {}, {"int32[1,1,2,2]"}},
      {"QLinearConv",
       {"uint8[N,3,8,8]", "float32[]", "uint8[]", "int8[4,3,1,1]", "float32[4]", "int8[4]",
        "float32[]", "int8[]"},
       {},
       {"int8[N,4,8,8]"}},
      {"Col2Im", {"float32[1,5,5]", ints({5, 5}), ints({1, 5})}, {}, {"float32[1,1,5,5]"}},
  });
}

TEST(InferRules, Pooling) {
  check({
      {"MaxPool",
       {"float32[N,3,32,32]"},
       {{"kernel_shape", list({2, 2})}, {"strides", list({2, 2})}},
       {"float32[N,3,16,16]", "int64[N,3,16,16]"}},
      {"MaxPool",
       {"float32[1,1,4,4]"},
       {{"kernel_shape", list({3, 3})}, {"strides", list({2, 2})}, {"ceil_mode", std::int64_t{1}}},
       {"float32[1,1,2,2]"}},
      {"AveragePool",
       {"float32[1,1,H,W]"},
       {{"kernel_shape", list({2, 2})}, {"strides", list({2, 2})}},
       {"float32[1,1,floor(H/2),floor(W/2)]"}},
      {"GlobalAveragePool", {"float32[N,64,H,W]"}, {}, {"float32[N,64,1,1]"}},
      {"QLinearGlobalAveragePool",
       {"uint8[N,7,7,64]", "float32[]", "uint8[]", "float32[]", "uint8[]"},
       {{"channels_last", std::int64_t{1}}},
       {"uint8[N,1,1,64]"},
       21,
       "com.microsoft"},
      {"MaxUnpool",
       {"float32[1,1,2,2]", "int64[1,1,2,2]"},
       {{"kernel_shape", list({2, 2})}, {"strides", list({2, 2})}},
       {"float32[1,1,4,4]"}},
  });
}

TEST(InferRules, MatrixProducts) {
  check({
      {"MatMul", {"float32[B,1,S,64]", "float32[12,64,T]"}, {}, {"float32[B,12,S,T]"}},
      {"MatMul", {"float32[64]", "float32[3,64,5]"}, {}, {"float32[3,5]"}},
      {"MatMul", {"float32[3,64]", "float32[64]"}, {}, {"float32[3]"}},
      {"Gemm",
       {"float32[N,64]", "float32[10,64]", "float32[10]"},
       {{"transB", std::int64_t{1}}},
       {"float32[N,10]"}},
      {"MatMulInteger", {"uint8[N,4]", "int8[4,3]"}, {}, {"int32[N,3]"}},
      {"QLinearMatMul",
       {"uint8[N,4]", "float32[]", "uint8[]", "int8[4,3]", "float32[]", "int8[]", "float32[]",
        "uint8[]"},
       {},
       {"uint8[N,3]"}},
      {"Einsum",
       {"float32[B,S,H]", "float32[H,K]"},
       {{"equation", string("bsh,hk->bsk")}},
       {"float32[B,S,K]"}},
      {"Einsum", {"float32[2,3,3]"}, {{"equation", string("...ii ->...i")}}, {"float32[2,3]"}},
      {"QGemm",
       {"uint8[N,4]", "float32[]", "uint8[]", "int8[4,3]", "float32[]", "int8[]"},
       {},
       {"float32[N,3]"},
       21,
       "com.microsoft"},
      {"AllReduce", {"float32[N,8]"}, {}, {"float32[N,8]"}, 21, "com.microsoft"},
      {"AllGather",
       {"float32[N,S,8]"},
       {{"axis", std::int64_t{-1}}, {"group_size", std::int64_t{4}}},
       {"float32[N,S,32]"},
       21,
       "com.microsoft"},
      {"DynamicQuantizeMatMul",
       {"float32[N,4]", "int8[4,3]", "float32[]"},
       {},
       {"float32[N,3]"},
       21,
       "com.microsoft"},
  });
}

TEST(InferRules, Reductions) {
  check({
      {"ReduceMean", {"float32[N,C,H,W]"}, {{"axes", list({2, 3})}}, {"float32[N,C,1,1]"}, 13},
      {"ReduceMean",
       {"float32[N,C,H,W]", ints({-1, -2})},
       {{"keepdims", std::int64_t{0}}},
       {"float32[N,C]"},
       18},
      {"ReduceSum", {"float32[N,C]"}, {}, {"float32[1,1]"}},
      {"ReduceSum",
       {"float32[N,C]"},
       {{"noop_with_empty_axes", std::int64_t{1}}},
       {"float32[N,C]"}},
      {"ReduceSum", {"float32[N,C]", "int64[1]"}, {}, {"float32[?,?]"}},
      {"ReduceMax",
       {"float32[N,C]", "int64[1]"},
       {{"keepdims", std::int64_t{0}}},
       {"float32[...]"}},
      {"ArgMax",
       {"float32[N,10]"},
       {{"axis", std::int64_t{-1}}, {"keepdims", std::int64_t{0}}},
       {"int64[N]"}},
  });
}

TEST(InferRules, Shapes) {
  check({
      {"Reshape", {"float32[N,3,4]", ints({0, -1})}, {}, {"float32[N,12]"}},
      {"Reshape", {"float32[N,C,H,W]", ints({0, 0, -1})}, {}, {"float32[N,C,H*W]"}},
      {"Reshape", {"float32[2,6]", ints({-1, 4})}, {}, {"float32[3,4]"}},
      {"Reshape",
       {"float32[0,3]", ints({3, 0})},
       {{"allowzero", std::int64_t{1}}},
       {"float32[3,0]"}},
      {"Reshape", {"float32[N,4]", "int64[3]"}, {}, {"float32[?,?,?]"}},
      {"Flatten", {"float32[N,2,3]"}, {}, {"float32[N,6]"}},
      {"Flatten", {"float32[2,3,4]"}, {{"axis", std::int64_t{-1}}}, {"float32[6,4]"}},
      {"Squeeze", {"float32[1,N,1]", ints({0, -1})}, {}, {"float32[N]"}},
      {"Squeeze", {"float32[1,3,1]"}, {}, {"float32[3]"}},
      {"Squeeze", {"float32[1,N]"}, {}, {"float32[...]"}},
      {"Unsqueeze", {"float32[N]"}, {{"axes", list({0, 2})}}, {"float32[1,N,1]"}, 11},
      {"Transpose", {"float32[N,C,H,W]"}, {{"perm", list({0, 2, 3, 1})}}, {"float32[N,H,W,C]"}},
      {"Transpose", {"float32[A,B]"}, {}, {"float32[B,A]"}},
      {"Concat", {"float32[N,3]", "float32[N,5]"}, {{"axis", std::int64_t{1}}}, {"float32[N,8]"}},
      {"Concat",
       {"float32[?,A]", "float32[N,B]"},
       {{"axis", std::int64_t{-1}}},
       {"float32[N,A+B]"}},
      {"Split",
       {"float32[N,6]"},
       {{"axis", std::int64_t{1}}},
       {"float32[N,2]", "float32[N,2]", "float32[N,2]"},
       13},
      {"Split",
       {"float32[7]"},
       {{"num_outputs", std::int64_t{3}}},
       {"float32[3]", "float32[3]", "float32[1]"},
       18},
      {"Split", {"float32[7]", ints({5, 2})}, {}, {"float32[5]", "float32[2]"}},
      {"Tile", {"float32[N,3]", ints({2, 1})}, {}, {"float32[2*N,3]"}},
      {"Expand", {"float32[N,1]", ints({1, 4})}, {}, {"float32[N,4]"}},
      {"DepthToSpace",
       {"float32[N,12,H,W]"},
       {{"blocksize", std::int64_t{2}}},
       {"float32[N,3,2*H,2*W]"}},
      {"SpaceToDepth",
       {"float32[N,3,8,8]"},
       {{"blocksize", std::int64_t{2}}},
       {"float32[N,12,4,4]"}},
      {"Pad", {"float32[N,3,H]", ints({0, 0, 1, 0, 0, 2})}, {}, {"float32[N,3,H+3]"}},
      {"Pad", {"float32[2,3]"}, {{"pads", list({0, 1, 0, 1})}}, {"float32[2,5]"}, 7},
      {"Pad", {"float32[2,3,4]", ints({1, 1}), kNone, ints({-1})}, {}, {"float32[2,3,6]"}},
      {"CenterCropPad",
       {"float32[20,10,3]", ints({10, 9})},
       {{"axes", list({0, 1})}},
       {"float32[10,9,3]"}},
      {"Shape", {"float32[N,3,4]"}, {{"start", std::int64_t{-2}}}, {"int64[2]"}},
      {"Size", {"float32[N]"}, {}, {"int64[]"}},
  });
}

TEST(InferRules, PickingAndPlacing) {
  check({
      {"Gather", {"float32[V,64]", "int64[B,S]"}, {}, {"float32[B,S,64]"}},
      {"Gather",
       {"float32[N,4,8]", Tensor::scalar<std::int64_t>(2)},
       {{"axis", std::int64_t{1}}},
       {"float32[N,8]"}},
      {"GatherElements",
       {"float32[5,5]", "int64[2,K]"},
       {{"axis", std::int64_t{1}}},
       {"float32[2,K]"}},
      {"GatherND",
       {"float32[B,3,4]", "int64[B,7,1]"},
       {{"batch_dims", std::int64_t{1}}},
       {"float32[B,7,4]"}},
      {"ScatterND", {"float32[N,4]", "int64[2,1]", "float32[2,4]"}, {}, {"float32[N,4]"}},
      {"Slice", {"float32[N,10]", ints({2}), ints({-1}), ints({1})}, {}, {"float32[N,7]"}},
      {"Slice",
       {"float32[N,10]", ints({-1}), ints({INT64_MIN}), ints({1}), ints({-3})},
       {},
       {"float32[N,4]"}},
      {"Slice", {"float32[H,W]", ints({1, 0}), ints({INT64_MAX, -1})}, {}, {"float32[H-1,W-1]"}},
      {"Slice",
       {"float32[20,10,5]"},
       {{"starts", list({0, 0})}, {"ends", list({3, 10})}, {"axes", list({0, 1})}},
       {"float32[3,10,5]"},
       9},
      {"OneHot",
       {"int64[N]", Tensor::scalar<std::int64_t>(10), "float32[2]"},
       {},
       {"float32[N,10]"}},
      {"NonZero", {"float32[N,3]"}, {}, {"int64[2,?]"}},
      {"Compress", {"float32[N,3]", "bool[?]"}, {{"axis", std::int64_t{0}}}, {"float32[?,3]"}},
      {"Unique", {"float32[N]"}, {}, {"float32[?]", "int64[?]", "int64[?]", "int64[?]"}},
      {"TopK", {"float32[N,100]", ints({5})}, {}, {"float32[N,5]", "int64[N,5]"}},
      {"NonMaxSuppression", {"float32[B,S,4]", "float32[B,C,S]"}, {}, {"int64[?,3]"}},
      {"RoiAlign",
       {"float32[N,64,H,W]", "float32[R,4]", "int64[R]"},
       {{"output_height", std::int64_t{7}}, {"output_width", std::int64_t{5}}},
       {"float32[R,64,7,5]"}},
  });
}

TEST(InferRules, NormalisationAndRecurrence) {
  check({
      {"BatchNormalization",
       {"float32[N,3,H]", "float32[3]", "float32[3]", "float32[3]", "float32[3]"},
       {},
       {"float32[N,3,H]"}},
      {"LayerNormalization",
       {"float32[B,S,64]", "float32[64]"},
       {},
       {"float32[B,S,64]", "float32[B,S,1]", "float32[B,S,1]"}},
      {"GroupNormalization",
       {"float32[N,8,H]", "float32[8]", "float32[8]"},
       {{"num_groups", std::int64_t{4}}},
       {"float32[N,8,H]"}},
      {"RMSNormalization", {"float16[B,64]", "float16[64]"}, {}, {"float16[B,64]"}, 23},
      {"Dropout", {"float32[N]"}, {}, {"float32[N]", "bool[N]"}},
      {"LSTM",
       {"float32[T,B,8]", "float32[2,64,8]", "float32[2,64,16]"},
       {{"direction", string("bidirectional")}, {"hidden_size", std::int64_t{16}}},
       {"float32[T,2,B,16]", "float32[2,B,16]", "float32[2,B,16]"}},
      {"GRU",
       {"float32[B,T,8]", "float32[1,48,8]", "float32[1,48,16]"},
       {{"layout", std::int64_t{1}}},
       {"float32[B,T,1,16]", "float32[B,1,16]"}},
      {"NegativeLogLikelihoodLoss",
       {"float32[N,C,5]", "int64[N,5]"},
       {{"reduction", string("none")}},
       {"float32[N,5]"}},
      {"SoftmaxCrossEntropyLoss", {"float32[N,C]", "int64[N]"}, {}, {"float32[]", "float32[N,C]"}},
      {"Attention",
       {"float32[B,S,64]", "float32[B,T,64]", "float32[B,T,32]"},
       {{"q_num_heads", std::int64_t{4}}, {"kv_num_heads", std::int64_t{4}}},
       {"float32[B,S,32]"},
       23},
  });
}

TEST(InferRules, QuantisationAndResize) {
  check({
      {"QuantizeLinear", {"float32[N,3]", "float32[]"}, {}, {"uint8[N,3]"}},
      {"QuantizeLinear", {"float32[N,3]", "float32[3]", "int8[3]"}, {}, {"int8[N,3]"}},
      {"QuantizeLinear",
       {"float32[N,4]", "float32[N,2]"},
       {{"output_dtype", std::int64_t{22}}, {"block_size", std::int64_t{2}}},
       {"int4[N,4]"}},
      {"DequantizeLinear", {"int4[N,3]", "float16[]"}, {}, {"float16[N,3]"}},
      {"DynamicQuantizeLinear", {"float32[N]"}, {}, {"uint8[N]", "float32[]", "uint8[]"}},
      {"QLinearAdd",
       {"uint8[N,3]", "float32[]", "uint8[]", "uint8[3]", "float32[]", "uint8[]", "float32[]",
        "uint8[]"},
       {},
       {"uint8[N,3]"},
       21,
       "com.microsoft"},
      {"QLinearConcat",
       {"float32[]", "int8[]", "int8[N,3]", "float32[]", "int8[]", "int8[N,2]", "float32[]",
        "int8[]"},
       {{"axis", std::int64_t{1}}},
       {"int8[N,5]"},
       21,
       "com.microsoft"},
      {"Resize", {"float32[N,3,H,5]", kNone, floats({1, 1, 2, 0.6F})}, {}, {"float32[N,3,2*H,3]"}},
      {"Resize",
       {"float32[N,3,H,W]", kNone, kNone, ints({1, 3, 64, 32})},
       {},
       {"float32[1,3,64,32]"}},
      {"Resize",
       {"float32[N,3,10,20]", kNone, kNone, ints({20, 20})},
       {{"axes", list({2, 3})}, {"keep_aspect_ratio_policy", string("not_larger")}},
       {"float32[N,3,10,20]"}},
      {"Upsample", {"float32[N,3,4,4]", floats({1, 1, 2, 2})}, {}, {"float32[N,3,8,8]"}, 9},
      {"Upsample",
       {"float32[N,3,4,4]"},
       {{"scales", std::vector<float>{1, 1, 2, 3}}},
       {"float32[N,3,8,12]"},
       7},
      {"GridSample", {"float32[N,C,H,W]", "float32[N,P,Q,2]"}, {}, {"float32[N,C,P,Q]"}},
  });
}

TEST(InferRules, Generators) {
  check({
      {"Constant", {}, {{"value", floats({1, 2})}}, {"float32[2]"}},
      {"Constant", {}, {{"value_int", std::int64_t{3}}}, {"int64[]"}},
      {"ConstantOfShape", {ints({2, 3})}, {}, {"float32[2,3]"}},
      {"Range",
       {Tensor::scalar<std::int64_t>(10), Tensor::scalar<std::int64_t>(3),
        Tensor::scalar<std::int64_t>(-2)},
       {},
       {"int64[4]"}},
      {"Range",
       {Tensor::scalar<float>(0), Tensor::scalar<float>(1), Tensor::scalar<float>(0.25F)},
       {},
       {"float32[4]"}},
      {"EyeLike", {"int32[4,4]"}, {{"dtype", std::int64_t{1}}}, {"float32[4,4]"}},
      {"RandomUniform", {}, {{"shape", list({2, 5})}}, {"float32[2,5]"}},
      {"HannWindow", {Tensor::scalar<std::int64_t>(10)}, {}, {"float32[10]"}},
      {"DFT", {"float32[N,10,1]"}, {{"onesided", std::int64_t{1}}}, {"float32[N,6,2]"}, 17},
  });
}

TEST(InferRules, WhatIsNotKnownStaysUnknown) {
  check({
      {"Invented", {"float32[2]"}, {}, {"unknown"}},
      {"Relu", {"float32[2]"}, {}, {"unknown"}, 21, "my.domain"},
      {"SequenceEmpty", {}, {}, {"unknown"}},
  });
}

}  // namespace
}  // namespace quench::testing
