// SPDX-License-Identifier: Apache-2.0
// Every element type, raw and typed, reads to the bytes it has in memory and is written as it was.
#include <gtest/gtest.h>

#include <cstring>

#include "unit/formats/onnx_builder.h"

namespace quench::testing {
namespace {

constexpr std::int64_t kCount = 5;

onnx::TensorProto tensor_of(DType dtype) {
  onnx::TensorProto tensor;
  tensor.set_name("w");
  tensor.set_data_type(static_cast<std::int32_t>(dtype));
  tensor.add_dims(kCount);
  return tensor;
}

onnx::ModelProto model_of(const onnx::TensorProto& tensor) {
  onnx::ModelProto model = small_model();
  *model.mutable_graph()->add_initializer() = tensor;
  return model;
}

Tensor read(const onnx::TensorProto& tensor) {
  const Model model = load_proto(model_of(tensor));
  return model.graph[model.graph.find("w")].constant.value();
}

class EveryDType : public ::testing::TestWithParam<DType> {};

TEST_P(EveryDType, Raw) {
  const std::size_t size = num_bytes(GetParam(), kCount).value();
  std::string raw;
  for (std::size_t i = 0; i < size; ++i) {
    raw.push_back(static_cast<char>(GetParam() == DType::Bool ? i % 2 : 17 * i + 1));
  }
  onnx::TensorProto tensor = tensor_of(GetParam());
  tensor.set_raw_data(raw);
  const Tensor result = read(tensor);
  EXPECT_EQ(result.dtype(), GetParam());
  EXPECT_EQ(result.shape(), Shape{kCount});
  ASSERT_EQ(result.bytes().size(), raw.size());
  EXPECT_EQ(std::memcmp(result.bytes().data(), raw.data(), raw.size()), 0);
  EXPECT_EQ(round_trip(model_of(tensor)), model_of(tensor).SerializeAsString());
}

TEST_P(EveryDType, OneByteTooFewIsRefused) {
  onnx::TensorProto tensor = tensor_of(GetParam());
  tensor.set_raw_data(std::string(num_bytes(GetParam(), kCount).value() - 1, '\0'));
  EXPECT_NE(load_error(model_of(tensor).SerializeAsString()).find("'w'"), std::string::npos);
}

TEST_P(EveryDType, MillionsOfElementsWithoutDataAreRefused) {
  onnx::TensorProto tensor = tensor_of(GetParam());
  tensor.set_dims(0, 1'000'000'000'000);
  EXPECT_NE(load_error(model_of(tensor).SerializeAsString()).find("'w'"), std::string::npos);
}

TEST_P(EveryDType, Empty) {
  onnx::TensorProto tensor = tensor_of(GetParam());
  tensor.set_dims(0, 0);
  EXPECT_EQ(read(tensor).size(), 0);
  EXPECT_EQ(round_trip(model_of(tensor)), model_of(tensor).SerializeAsString());
}

std::vector<DType> all_but_strings() {
  std::vector<DType> result;
  for (const DTypeInfo& row : all_dtypes()) {
    if (row.dtype != DType::Undefined && row.dtype != DType::String) result.push_back(row.dtype);
  }
  return result;
}

INSTANTIATE_TEST_SUITE_P(All, EveryDType, ::testing::ValuesIn(all_but_strings()),
                         [](const auto& each) { return std::string(name_of(each.param)); });

TEST(TypedData, Floats) {
  onnx::TensorProto tensor = tensor_of(DType::Float32);
  for (int i = 0; i < kCount; ++i) tensor.add_float_data(static_cast<float>(i) / 2);
  EXPECT_EQ(read(tensor).data<float>()[3], 1.5F);
  EXPECT_EQ(round_trip(model_of(tensor)), model_of(tensor).SerializeAsString());
}

TEST(TypedData, DoublesAndComplex) {
  onnx::TensorProto doubles = tensor_of(DType::Float64);
  onnx::TensorProto complex = tensor_of(DType::Complex64);
  for (int i = 0; i < kCount; ++i) {
    doubles.add_double_data(i * 0.25);
    complex.add_float_data(1);
    complex.add_float_data(-1);
  }
  EXPECT_EQ(read(doubles).data<double>()[2], 0.5);
  EXPECT_EQ(read(complex).bytes().size(), 40U);
  EXPECT_EQ(round_trip(model_of(doubles)), model_of(doubles).SerializeAsString());
  EXPECT_EQ(round_trip(model_of(complex)), model_of(complex).SerializeAsString());
}

TEST(TypedData, FloatsThatAreNotPacked) {
  // Old writers give each element a tag of its own.
  onnx::TensorProto tensor = tensor_of(DType::Float32);
  std::string bytes = tensor.SerializeAsString();
  for (int i = 0; i < kCount; ++i) {
    const auto value = static_cast<float>(i);
    bytes.push_back('\x25');
    bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  ASSERT_TRUE(tensor.ParseFromString(bytes));
  std::string graph("\x2A");
  graph.push_back(static_cast<char>(bytes.size()));
  graph += bytes;
  std::string model = small_model().SerializeAsString();
  model.push_back('\x3A');
  model.push_back(static_cast<char>(graph.size()));
  model += graph;
  const Model read_model = load_bytes(model);
  EXPECT_EQ(read_model.graph.constant(read_model.graph.find("w"))->data<float>()[4], 4.0F);
}

template <typename T>
void expect_in_int32_data(DType dtype, std::initializer_list<std::int32_t> entries,
                          std::initializer_list<T> cells) {
  onnx::TensorProto tensor = tensor_of(dtype);
  for (const std::int32_t entry : entries) tensor.add_int32_data(entry);
  const Tensor result = read(tensor);
  ASSERT_EQ(result.bytes().size(), cells.size() * sizeof(T)) << name_of(dtype);
  EXPECT_EQ(std::memcmp(result.bytes().data(), cells.begin(), result.bytes().size()), 0)
      << name_of(dtype);
  EXPECT_EQ(round_trip(model_of(tensor)), model_of(tensor).SerializeAsString()) << name_of(dtype);
}

TEST(TypedData, SmallTypesLieInInt32Data) {
  expect_in_int32_data<std::int32_t>(DType::Int32, {1, -2, 3, -4, 5}, {1, -2, 3, -4, 5});
  expect_in_int32_data<std::int16_t>(DType::Int16, {1, -2, 3, -4, 5}, {1, -2, 3, -4, 5});
  expect_in_int32_data<std::int8_t>(DType::Int8, {1, -2, 3, -4, 5}, {1, -2, 3, -4, 5});
  expect_in_int32_data<std::uint8_t>(DType::UInt8, {1, 255, 3, 4, 5}, {1, 255, 3, 4, 5});
  expect_in_int32_data<std::uint16_t>(DType::UInt16, {1, 65535, 3, 4, 5}, {1, 65535, 3, 4, 5});
  expect_in_int32_data<std::uint8_t>(DType::Bool, {1, 0, 1, 1, 0}, {1, 0, 1, 1, 0});
  expect_in_int32_data<std::uint16_t>(DType::Float16, {0x3C00, 0xBC00, 0, 1, 2},
                                      {0x3C00, 0xBC00, 0, 1, 2});
  expect_in_int32_data<std::uint16_t>(DType::BFloat16, {0x3F80, 0xBF80, 0, 1, 2},
                                      {0x3F80, 0xBF80, 0, 1, 2});
  expect_in_int32_data<std::uint8_t>(DType::Float8E4M3FN, {1, 200, 3, 4, 5}, {1, 200, 3, 4, 5});
}

TEST(TypedData, TypesBelowAByteArePacked) {
  expect_in_int32_data<std::uint8_t>(DType::UInt4, {0x21, 0x43, 0x05}, {0x21, 0x43, 0x05});
  expect_in_int32_data<std::uint8_t>(DType::Int4, {0xF1, 0x43, 0x05}, {0xF1, 0x43, 0x05});
  expect_in_int32_data<std::uint8_t>(DType::Float4E2M1, {0x21, 0x43, 0x05}, {0x21, 0x43, 0x05});
  expect_in_int32_data<std::uint8_t>(DType::UInt2, {0xE4, 0x01}, {0xE4, 0x01});
}

TEST(TypedData, WideIntegers) {
  onnx::TensorProto signed64 = tensor_of(DType::Int64);
  onnx::TensorProto unsigned64 = tensor_of(DType::UInt64);
  onnx::TensorProto unsigned32 = tensor_of(DType::UInt32);
  for (int i = 0; i < kCount; ++i) {
    signed64.add_int64_data(-i);
    unsigned64.add_uint64_data(~0ULL - static_cast<unsigned>(i));
    unsigned32.add_uint64_data(4294967295U - static_cast<unsigned>(i));
  }
  EXPECT_EQ(read(signed64).data<std::int64_t>()[4], -4);
  EXPECT_EQ(read(unsigned64).data<std::uint64_t>()[1], ~0ULL - 1);
  EXPECT_EQ(read(unsigned32).data<std::uint32_t>()[0], 4294967295U);
  for (const auto& tensor : {signed64, unsigned64, unsigned32}) {
    EXPECT_EQ(round_trip(model_of(tensor)), model_of(tensor).SerializeAsString());
  }
}

TEST(TypedData, Strings) {
  onnx::TensorProto tensor = tensor_of(DType::String);
  for (const char* text : {"a", "", "ccc", "d\xFF", "e"}) tensor.add_string_data(text);
  EXPECT_EQ(read(tensor).strings()[2], "ccc");
  EXPECT_EQ(round_trip(model_of(tensor)), model_of(tensor).SerializeAsString());
  tensor.add_string_data("one too many");
  EXPECT_NE(load_error(model_of(tensor).SerializeAsString()).find("'w'"), std::string::npos);
}

TEST(TypedData, Scalar) {
  onnx::TensorProto tensor = tensor_of(DType::Float32);
  tensor.clear_dims();
  tensor.add_float_data(2.5F);
  EXPECT_EQ(read(tensor).shape(), Shape{});
  EXPECT_EQ(read(tensor).data<float>()[0], 2.5F);
}

TEST(RawData, BoolsAreMadeZeroOrOne) {
  onnx::TensorProto tensor = tensor_of(DType::Bool);
  tensor.set_raw_data(std::string("\0\1\2\xFF\0", 5));
  const Tensor result = read(tensor);
  EXPECT_EQ(result, Tensor::of<bool>({5}, {false, true, true, true, false}));
}

}  // namespace
}  // namespace quench::testing
