// SPDX-License-Identifier: Apache-2.0
// The typed fields of TensorProto: which field holds which type, and the conversion both ways.
#include <cstring>

#include "base/format.h"
#include "formats/onnx/onnx.pb.h"
#include "formats/onnx/tensors.h"

namespace quench::onnx {
namespace {

void expect_entries(std::int64_t found, std::int64_t expected, DType dtype, const Shape& shape) {
  if (found == expected) return;
  fail(ErrorKind::BadModel,
       "its typed data has {} entries, but {} of shape {} takes {}; the file is damaged", found,
       name_of(dtype), to_string(shape), expected);
}

/// Narrows each entry to `Cell`, which is how the field stores smaller types.
template <typename Cell, typename Field>
Tensor narrow(const Field& field, DType dtype, Shape shape, std::int64_t cells) {
  expect_entries(field.size(), cells, dtype, shape);
  Tensor result = Tensor::zeros(dtype, std::move(shape));
  std::byte* out = result.mutable_bytes().data();
  for (const auto entry : field) {
    const auto cell = static_cast<Cell>(entry);
    std::memcpy(out, &cell, sizeof(cell));
    out += sizeof(cell);
  }
  return result;
}

template <typename Cell, typename Field>
void widen(const Tensor& tensor, Field& field) {
  const auto bytes = tensor.bytes();
  field.Reserve(static_cast<int>(bytes.size() / sizeof(Cell)));
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(Cell)) {
    Cell cell;
    std::memcpy(&cell, bytes.data() + at, sizeof(cell));
    field.Add(cell);
  }
}

bool is_signed_byte(DType dtype) { return dtype == DType::Int8; }

}  // namespace

Tensor from_typed(const TensorProto& proto, DType dtype, Shape shape, std::int64_t count) {
  switch (dtype) {
    case DType::Float32:
      return narrow<float>(proto.float_data(), dtype, std::move(shape), count);
    case DType::Complex64:
    case DType::Complex128: {
      // Twice a count that fits 62 bits: its bytes were found to fit already.
      const std::int64_t cells = count * 2;
      return dtype == DType::Complex64
                 ? narrow<float>(proto.float_data(), dtype, std::move(shape), cells)
                 : narrow<double>(proto.double_data(), dtype, std::move(shape), cells);
    }
    case DType::Float64:
      return narrow<double>(proto.double_data(), dtype, std::move(shape), count);
    case DType::Int64:
      return narrow<std::int64_t>(proto.int64_data(), dtype, std::move(shape), count);
    case DType::UInt64:
      return narrow<std::uint64_t>(proto.uint64_data(), dtype, std::move(shape), count);
    case DType::UInt32:
      return narrow<std::uint32_t>(proto.uint64_data(), dtype, std::move(shape), count);
    case DType::Int32:
      return narrow<std::int32_t>(proto.int32_data(), dtype, std::move(shape), count);
    case DType::Bool:
      return narrow<bool>(proto.int32_data(), dtype, std::move(shape), count);
    default:
      break;
  }
  if (info(dtype).bits == 16) {
    return narrow<std::uint16_t>(proto.int32_data(), dtype, std::move(shape), count);
  }
  // One byte an entry; types below a byte are packed first.
  const auto cells = static_cast<std::int64_t>(*num_bytes(dtype, count));
  return narrow<std::uint8_t>(proto.int32_data(), dtype, std::move(shape), cells);
}

void to_typed(const Tensor& tensor, TensorProto& proto) {
  const DType dtype = tensor.dtype();
  switch (dtype) {
    case DType::Int64:
      return widen<std::int64_t>(tensor, *proto.mutable_int64_data());
    case DType::UInt64:
      return widen<std::uint64_t>(tensor, *proto.mutable_uint64_data());
    case DType::UInt32:
      return widen<std::uint32_t>(tensor, *proto.mutable_uint64_data());
    case DType::Int32:
      return widen<std::int32_t>(tensor, *proto.mutable_int32_data());
    case DType::Int16:
      return widen<std::int16_t>(tensor, *proto.mutable_int32_data());
    default:
      break;
  }
  if (info(dtype).bits == 16) {
    widen<std::uint16_t>(tensor, *proto.mutable_int32_data());
  } else if (is_signed_byte(dtype)) {
    widen<std::int8_t>(tensor, *proto.mutable_int32_data());
  } else {
    widen<std::uint8_t>(tensor, *proto.mutable_int32_data());
  }
}

}  // namespace quench::onnx
