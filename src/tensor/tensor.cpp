// SPDX-License-Identifier: Apache-2.0
// Tensor storage: shared, viewed or owned.
#include "quench/tensor.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <new>

#include "base/file.h"
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

/// The owner of a stored tensor: hands out its bytes once to all who hold them at a time.
class StoredBytes {
 public:
  explicit StoredBytes(std::shared_ptr<const ByteSource> source) : source_(std::move(source)) {}

  const ByteSource* source() const noexcept { return source_.get(); }
  std::shared_ptr<const std::byte> hold() const {
    const std::lock_guard lock(mutex_);
    return hold_locked();
  }
  const std::byte* fetch() const {
    if (const std::byte* begin = begin_.load(std::memory_order_acquire)) return begin;
    const std::lock_guard lock(mutex_);
    kept_ = hold_locked();
    begin_.store(kept_.get(), std::memory_order_release);
    return kept_.get();
  }
  void drop() const {
    const std::lock_guard lock(mutex_);
    begin_ = nullptr;
    kept_.reset();
  }

 private:
  std::shared_ptr<const std::byte> hold_locked() const {
    if (auto known = known_.lock()) return known;
    auto bytes = source_->hold();
    known_ = bytes;
    return bytes;
  }

  std::shared_ptr<const ByteSource> source_;
  mutable std::mutex mutex_;
  mutable std::weak_ptr<const std::byte> known_;
  mutable std::shared_ptr<const std::byte> kept_;
  mutable std::atomic<const std::byte*> begin_{nullptr};
};

class Made final : public ByteSource {
 public:
  explicit Made(std::function<Tensor()> make) : make_(std::move(make)) {}
  std::shared_ptr<const std::byte> hold() const override {
    const auto tensor = std::make_shared<const Tensor>(make_());
    return {tensor, tensor->bytes().data()};
  }

 private:
  std::function<Tensor()> make_;
};

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

Tensor Tensor::stored(DType dtype, Shape shape, std::shared_ptr<const ByteSource> source) {
  Tensor result;
  result.count_ = checked_count(shape);
  const auto size = quench::num_bytes(dtype, result.count_);
  if (!size || *size == 0 || dtype == DType::String) {
    fail(ErrorKind::BadData, "a {} tensor of shape {} cannot be stored", name_of(dtype),
         to_string(shape));
  }
  result.dtype_ = dtype;
  result.shape_ = std::move(shape);
  result.num_bytes_ = *size;
  result.owner_ = std::make_shared<const StoredBytes>(std::move(source));
  return result;
}

Tensor Tensor::made(DType dtype, Shape shape, std::function<Tensor()> make) {
  return stored(dtype, std::move(shape), std::make_shared<Made>(std::move(make)));
}

const std::byte* Tensor::fetched() const {
  return static_cast<const StoredBytes*>(owner_.get())->fetch();
}

const void* Tensor::identity() const noexcept {
  if (!is_stored()) return data_;
  return static_cast<const StoredBytes*>(owner_.get())->source();
}

Tensor Tensor::held() const {
  if (!is_stored()) return *this;
  auto bytes = static_cast<const StoredBytes*>(owner_.get())->hold();
  const std::byte* begin = bytes.get();
  return view(dtype_, shape_, {begin, num_bytes_}, std::move(bytes));
}

void Tensor::drop() const {
  if (!is_stored()) return release_pages({data_, num_bytes_});
  static_cast<const StoredBytes*>(owner_.get())->drop();
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
    const Tensor source = held();
    if (num_bytes_ != 0) std::memcpy(copy.get(), source.data_, num_bytes_);
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

bool Tensor::operator==(const Tensor& other) const {
  if (dtype_ != other.dtype_ || shape_ != other.shape_) return false;
  if (dtype_ == DType::String) return strings() == other.strings();
  if (identity() == other.identity()) return true;
  return std::ranges::equal(held().bytes(), other.held().bytes());
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
