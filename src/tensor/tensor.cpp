// SPDX-License-Identifier: Apache-2.0
// Tensor storage: shared, viewed or owned.
#include "quench/tensor.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/format.h"

namespace quench {
namespace {

std::int64_t checked_count(const Shape& shape) {
  const auto count = num_elements(shape);
  if (!count) fail(ErrorKind::BadData, "a tensor cannot have the shape {}", to_string(shape));
  return *count;
}

/// Zeroed bytes, aligned for every kernel.
std::shared_ptr<std::byte> allocate(std::size_t size) {
  constexpr std::align_val_t kAlignment{64};
  auto* bytes = static_cast<std::byte*>(::operator new(std::max<std::size_t>(size, 1), kAlignment));
  std::memset(bytes, 0, size);
  return {bytes, [](std::byte* p) { ::operator delete(p, kAlignment); }};
}

}  // namespace

Tensor Tensor::zeros(DType dtype, Shape shape) {
  if (dtype == DType::String) {
    const auto count = static_cast<std::size_t>(checked_count(shape));
    return strings(std::move(shape), std::vector<std::string>(count));
  }
  Tensor result;
  result.count_ = checked_count(shape);
  const auto size = quench::num_bytes(dtype, result.count_);
  if (!size) {
    fail(ErrorKind::BadData, "a {} tensor cannot have the shape {}", name_of(dtype),
         to_string(shape));
  }
  result.dtype_ = dtype;
  result.shape_ = std::move(shape);
  result.num_bytes_ = *size;
  auto storage = allocate(*size);
  result.data_ = storage.get();
  result.owner_ = std::move(storage);
  result.writable_ = true;
  return result;
}

Tensor Tensor::view(DType dtype, Shape shape, std::span<const std::byte> bytes,
                    std::shared_ptr<const void> owner) {
  Tensor result;
  result.count_ = checked_count(shape);
  const auto size = quench::num_bytes(dtype, result.count_);
  if (!size || *size != bytes.size()) {
    fail(ErrorKind::BadData, "a {} tensor of shape {} does not take {} bytes", name_of(dtype),
         to_string(shape), bytes.size());
  }
  result.dtype_ = dtype;
  result.shape_ = std::move(shape);
  result.num_bytes_ = *size;
  result.data_ = bytes.data();
  result.owner_ = std::move(owner);
  return result;
}

Tensor Tensor::strings(Shape shape, std::vector<std::string> values) {
  Tensor result;
  result.count_ = checked_count(shape);
  if (static_cast<std::size_t>(result.count_) != values.size()) {
    fail(ErrorKind::BadData, "a string tensor of shape {} does not hold {} strings",
         to_string(shape), values.size());
  }
  result.dtype_ = DType::String;
  result.shape_ = std::move(shape);
  result.owner_ = std::make_shared<const std::vector<std::string>>(std::move(values));
  return result;
}

const std::vector<std::string>& Tensor::strings() const {
  expect(DType::String);
  return *static_cast<const std::vector<std::string>*>(owner_.get());
}

std::span<std::byte> Tensor::mutable_bytes() {
  if (!writable_ || owner_.use_count() != 1) {
    auto copy = allocate(num_bytes_);
    if (num_bytes_ != 0) std::memcpy(copy.get(), data_, num_bytes_);
    data_ = copy.get();
    owner_ = std::move(copy);
    writable_ = true;
  }
  // Safe: the bytes were allocated writable by this class and nobody else sees them.
  return {const_cast<std::byte*>(data_), num_bytes_};
}

Tensor Tensor::reshaped(Shape shape) const {
  if (checked_count(shape) != count_) {
    fail(ErrorKind::BadData, "a tensor of shape {} cannot become {}", to_string(shape_),
         to_string(shape));
  }
  Tensor result = *this;
  result.shape_ = std::move(shape);
  return result;
}

bool Tensor::operator==(const Tensor& other) const noexcept {
  if (dtype_ != other.dtype_ || shape_ != other.shape_) return false;
  if (dtype_ == DType::String) return strings() == other.strings();
  return std::ranges::equal(bytes(), other.bytes());
}

void Tensor::expect(DType dtype) const {
  if (dtype_ != dtype) {
    fail(ErrorKind::Internal, "a {} tensor was read as {}", name_of(dtype_), name_of(dtype));
  }
}

void Tensor::fill_from(std::span<const std::byte> bytes) {
  if (bytes.size() != num_bytes_) {
    fail(ErrorKind::BadData, "{} bytes do not fill a {} tensor of shape {}", bytes.size(),
         name_of(dtype_), to_string(shape_));
  }
  if (!bytes.empty()) std::memcpy(mutable_bytes().data(), bytes.data(), bytes.size());
}

}  // namespace quench
