// SPDX-License-Identifier: Apache-2.0
// Paddle's parameter files: what is written is read, and what does not fit the program is named.
#include <gtest/gtest.h>

#include "formats/paddle/params.h"
#include "formats/paddle/types.h"
#include "quench/formats.h"
#include "unit/formats/onnx_builder.h"

namespace quench::testing {
namespace {

std::string record(const Tensor& tensor) {
  const auto bytes = tensor.bytes();
  return paddle::record_header(tensor) +
         std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

onnx::Stored stored(const std::string& bytes) { return {std::as_bytes(std::span(bytes)), nullptr}; }

std::string error_of(const std::string& bytes, const std::vector<paddle::Parameter>& parameters) {
  try {
    (void)paddle::read_combined(stored(bytes), parameters);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::BadModel);
    return error.what();
  }
  return "";
}

void expect_contains(const std::string& text, const char* word) {
  EXPECT_NE(text.find(word), std::string::npos) << text;
}

TEST(PaddleParams, TheHeaderIsWhatPaddleWrites) {
  const std::string expected(
      "\0\0\0\0"
      "\0\0\0\0\0\0\0\0"
      "\0\0\0\0"
      "\x04\0\0\0"
      "\x08\x05\x10\x1e",
      24);
  EXPECT_EQ(paddle::record_header(Tensor::zeros(DType::Float32, {30})), expected);
}

TEST(PaddleParams, EveryTypeComesBack) {
  for (const DTypeInfo& row : all_dtypes()) {
    if (paddle::type_row(row.dtype) == nullptr) continue;
    Tensor tensor = Tensor::zeros(row.dtype, {2, 3});
    tensor.mutable_bytes()[1] = std::byte{1};
    const std::string bytes = record(tensor);
    EXPECT_EQ(paddle::read_single(stored(bytes), {"w", 6}), tensor) << row.name;
  }
}

TEST(PaddleParams, RecordsFollowTheNamesInOrder) {
  const Tensor b = Tensor::of<float>({2}, {1, 2});
  const Tensor a = Tensor::scalar<std::int8_t>(3);
  const std::string bytes = record(a) + record(b);
  const auto read = paddle::read_combined(
      stored(bytes), std::vector<paddle::Parameter>{{"b.w_0", 2}, {"a.w_0", 1}});
  EXPECT_EQ(read[0], b);
  EXPECT_EQ(read[1], a);
}

TEST(PaddleParams, AnotherShapeOfTheSameSizeIsRead) {
  const std::string bytes = record(Tensor::of<float>({1, 2}, {1, 2}));
  EXPECT_EQ(paddle::read_single(stored(bytes), {"scale", 2}).shape(), (Shape{1, 2}));
}

TEST(PaddleParams, WhatDoesNotFitIsNamed) {
  const std::string bytes = record(Tensor::of<float>({2}, {1, 2}));
  expect_contains(error_of(bytes, {{"w", 3}}), "parameter 'w': the program says 3 elements");
  expect_contains(error_of(bytes, {}), "bytes more");
  expect_contains(error_of(bytes, {{"w", 2}, {"x", 2}}), "parameter 'x'");
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    expect_contains(error_of(bytes.substr(0, size), {{"w", 2}}), "parameter 'w'");
  }
  std::string newer = bytes;
  newer[0] = 1;
  expect_contains(error_of(newer, {{"w", 2}}), "version 1");
  std::string levels = bytes;
  levels[4 + 7] = 1;
  expect_contains(error_of(levels, {{"w", 2}}), "levels of detail");
}

TEST(ModelPath, FolderAndNamesBecomeOnePath) {
  EXPECT_EQ(model_path("det", "", ""), "det");
  EXPECT_EQ(model_path("det", "__model__", ""), "det/__model__");
  EXPECT_EQ(model_path("det", "__model__", "__params__"), "det/__model__,__params__");
  EXPECT_EQ(model_path("det/__model__", "", "weights"), "det/__model__,weights");
}

TEST(ModelPath, AFolderWithoutAModelIsNamed) {
  const Folder folder;
  try {
    (void)load(folder / "");
    FAIL();
  } catch (const Error& error) {
    expect_contains(error.what(), "holds no model");
  }
}

TEST(ModelPath, AFileWithACommaIsStillAFile) {
  const Folder folder;
  write_bytes(folder / "a,b.onnx", small_model().SerializeAsString());
  EXPECT_EQ(load(folder / "a,b.onnx").graph.nodes.size(), 1U);
}

}  // namespace
}  // namespace quench::testing
