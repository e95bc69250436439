// SPDX-License-Identifier: Apache-2.0
// The dense tensor that models, samples and results are made of.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "quench/dtype.h"

namespace quench {

/// A dense, row-major tensor over shared storage. Copies share; the bytes seen through a const
/// tensor never change. Sub-byte elements are packed as ONNX packs them, low bits first.
class Tensor {
 public:
  Tensor() = default;

  /// A zero-filled tensor that owns its bytes.
  static Tensor zeros(DType dtype, Shape shape);
  /// A view of `bytes`, which `owner` keeps alive; the size must fit the shape.
  static Tensor view(DType dtype, Shape shape, std::span<const std::byte> bytes,
                     std::shared_ptr<const void> owner);
  static Tensor strings(Shape shape, std::vector<std::string> values);
  template <typename T>
  static Tensor of(Shape shape, std::span<const T> values) {
    Tensor result = zeros(DTypeOf<T>::value, std::move(shape));
    result.fill_from(std::as_bytes(values));
    return result;
  }
  template <typename T>
  static Tensor of(Shape shape, std::initializer_list<T> values) {
    return of<T>(std::move(shape), std::span<const T>(values.begin(), values.size()));
  }
  template <typename T>
  static Tensor scalar(T value) {
    return of<T>({}, std::span<const T>(&value, 1));
  }

  DType dtype() const noexcept { return dtype_; }
  const Shape& shape() const noexcept { return shape_; }
  std::int64_t rank() const noexcept { return static_cast<std::int64_t>(shape_.size()); }
  std::int64_t size() const noexcept { return count_; }
  bool defined() const noexcept { return dtype_ != DType::Undefined; }

  std::span<const std::byte> bytes() const noexcept { return {data_, num_bytes_}; }
  /// Writable bytes; copies first unless this tensor alone owns them.
  std::span<std::byte> mutable_bytes();
  /// The elements as `T`; throws Error(Internal) when `T` is not the element type.
  template <typename T>
  std::span<const T> data() const {
    expect(DTypeOf<T>::value);
    return {reinterpret_cast<const T*>(data_), static_cast<std::size_t>(count_)};
  }
  template <typename T>
  std::span<T> mutable_data() {
    expect(DTypeOf<T>::value);
    return {reinterpret_cast<T*>(mutable_bytes().data()), static_cast<std::size_t>(count_)};
  }
  const std::vector<std::string>& strings() const;
  /// What keeps the bytes alive, for handing them on without a copy.
  const std::shared_ptr<const void>& owner() const noexcept { return owner_; }

  /// The same elements under another shape of equal size.
  Tensor reshaped(Shape shape) const;
  /// Same type, shape and bytes.
  bool operator==(const Tensor& other) const noexcept;

 private:
  void expect(DType dtype) const;
  void fill_from(std::span<const std::byte> bytes);

  DType dtype_ = DType::Undefined;
  bool writable_ = false;
  Shape shape_;
  std::int64_t count_ = 0;
  std::size_t num_bytes_ = 0;
  const std::byte* data_ = nullptr;
  std::shared_ptr<const void> owner_;
};

/// Tensors by value name.
using TensorMap = std::map<std::string, Tensor>;

/// The elements as float32, whatever numeric type they have.
std::vector<float> to_float(const Tensor& tensor);
/// The elements converted to another numeric type, rounding to nearest even and saturating.
Tensor convert(const Tensor& tensor, DType dtype);

}  // namespace quench
