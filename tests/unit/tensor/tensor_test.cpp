// SPDX-License-Identifier: Apache-2.0
// Tensors share, copy on write, and convert exactly.
#include "quench/tensor.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "quench/error.h"
#include "tensor/half.h"

namespace quench {
namespace {

TEST(Tensor, CopiesShareUntilOneIsWritten) {
  const Tensor a = Tensor::of<float>({3}, {1.0F, 2.0F, 3.0F});
  Tensor b = a;
  EXPECT_EQ(a.bytes().data(), b.bytes().data());
  b.mutable_data<float>()[0] = 9;
  EXPECT_EQ(a.data<float>()[0], 1);
  EXPECT_EQ(b.data<float>()[0], 9);
}

TEST(Tensor, ViewsAreNeverWrittenThrough) {
  const float values[] = {1, 2};
  Tensor view = Tensor::view(DType::Float32, {2}, std::as_bytes(std::span(values)), nullptr);
  view.mutable_data<float>()[0] = 5;
  EXPECT_EQ(values[0], 1);
}

TEST(Tensor, SizesThatDoNotFitAreErrors) {
  const float values[] = {1, 2};
  EXPECT_THROW(Tensor::view(DType::Float32, {3}, std::as_bytes(std::span(values)), nullptr), Error);
  EXPECT_THROW(Tensor::zeros(DType::Float32, {1LL << 40, 1LL << 40}), Error);
  EXPECT_THROW(Tensor::zeros(DType::Float32, {-1}), Error);
  EXPECT_THROW((void)Tensor::zeros(DType::Int8, {1}).data<float>(), Error);
}

TEST(Tensor, PackedElementsTakePartsOfBytes) {
  EXPECT_EQ(num_bytes(DType::Int4, 3), 2U);
  EXPECT_EQ(num_bytes(DType::UInt2, 5), 2U);
  const std::byte packed[] = {std::byte{0xF1}, std::byte{0x07}};
  const Tensor t = Tensor::view(DType::Int4, {3}, packed, nullptr);
  EXPECT_EQ(to_float(t), (std::vector<float>{1, -1, 7}));
}

TEST(Tensor, ConversionRoundsHalfToEvenAndSaturates) {
  const Tensor t = Tensor::of<float>({6}, {0.5F, 1.5F, -2.5F, 300.0F, -300.0F, NAN});
  const Tensor bytes = convert(t, DType::Int8);
  const auto data = bytes.data<std::int8_t>();
  EXPECT_EQ(std::vector<int>(data.begin(), data.end()), (std::vector<int>{0, 2, -2, 127, -128, 0}));
}

TEST(Half, EveryPatternSurvivesTheRoundTrip) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = half_to_float(half);
    if (std::isnan(value)) continue;
    ASSERT_EQ(float_to_half(value), half) << bits;
  }
}

TEST(Half, RoundsToNearestEven) {
  EXPECT_EQ(float_to_half(1.0F + 0x1p-11F), float_to_half(1.0F));
  EXPECT_EQ(half_to_float(float_to_half(1.0F + 3 * 0x1p-11F)), 1.0F + 4 * 0x1p-11F);
  EXPECT_TRUE(std::isinf(half_to_float(float_to_half(65520.0F))));
  EXPECT_EQ(half_to_float(float_to_half(65519.0F)), 65504.0F);
  EXPECT_EQ(half_to_float(float_to_half(0x1p-24F)), 0x1p-24F);
  EXPECT_TRUE(std::isnan(half_to_float(float_to_half(NAN))));
}

TEST(BFloat16, RoundsToNearestEven) {
  EXPECT_EQ(bfloat16_to_float(float_to_bfloat16(1.0F + 0x1p-8F)), 1.0F);
  EXPECT_EQ(bfloat16_to_float(float_to_bfloat16(1.0F + 3 * 0x1p-8F)), 1.0F + 4 * 0x1p-8F);
  EXPECT_TRUE(std::isnan(bfloat16_to_float(float_to_bfloat16(NAN))));
}

TEST(DType, NamesAreUniqueAndFound) {
  for (const DTypeInfo& row : all_dtypes()) EXPECT_EQ(dtype_from_name(row.name), row.dtype);
  EXPECT_EQ(dtype_from_name("float31"), DType::Undefined);
}

}  // namespace
}  // namespace quench
