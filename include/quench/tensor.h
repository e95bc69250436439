// SPDX-License-Identifier: Apache-2.0
// The dense tensor that models, samples and results are made of.
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "quench/byte_source.h"
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
  /// A tensor whose bytes `source` has. They are brought in when they are first asked for, and then
  /// stay; `held` brings them in for a while.
  static Tensor stored(DType dtype, Shape shape, std::shared_ptr<const ByteSource> source);
  /// A stored tensor that `make` computes, with this type and shape, whenever it is brought in.
  static Tensor made(DType dtype, Shape shape, std::function<Tensor()> make);
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

  /// How many bytes there are; brings nothing in.
  std::size_t num_bytes() const noexcept { return num_bytes_; }
  std::span<const std::byte> bytes() const { return {begin(), num_bytes_}; }
  /// Writable bytes; copies first unless this tensor alone owns them.
  std::span<std::byte> mutable_bytes();
  /// The elements as `T`; throws Error(Internal) when `T` is not the element type.
  template <typename T>
  std::span<const T> data() const {
    expect(DTypeOf<T>::value);
    return {reinterpret_cast<const T*>(begin()), static_cast<std::size_t>(count_)};
  }
  template <typename T>
  std::span<T> mutable_data() {
    expect(DTypeOf<T>::value);
    return {reinterpret_cast<T*>(mutable_bytes().data()), static_cast<std::size_t>(count_)};
  }
  const std::vector<std::string>& strings() const;
  /// What keeps the bytes alive, for handing them on without a copy.
  const std::shared_ptr<const void>& owner() const noexcept { return owner_; }

  /// Whether the bytes come from a ByteSource.
  bool is_stored() const noexcept { return data_ == nullptr && num_bytes_ > 0; }
  /// This tensor with its bytes in memory. Those of a stored one leave it with the last tensor that
  /// `held` gave, or stay where somebody has asked the stored one itself for them.
  Tensor held() const;
  /// Lets go of bytes that need not stay in memory: those of a stored tensor, which nobody may be
  /// reading, and pages of a mapped file.
  void drop() const;
  /// The same for tensors that share all their bytes, and for no others that live.
  const void* identity() const noexcept;

  /// The same elements under another shape of equal size.
  Tensor reshaped(Shape shape) const;
  /// Same type, shape and bytes.
  bool operator==(const Tensor& other) const;

 private:
  void expect(DType dtype) const;
  void fill_from(std::span<const std::byte> bytes);
  const std::byte* begin() const { return is_stored() ? fetched() : data_; }
  const std::byte* fetched() const;

  DType dtype_ = DType::Undefined;
  bool writable_ = false;
  Shape shape_;
  std::int64_t count_ = 0;
  std::size_t num_bytes_ = 0;
  const std::byte* data_ = nullptr;  ///< null where `owner_` knows where the bytes are
  std::shared_ptr<const void> owner_;
};

/// Tensors by value name.
using TensorMap = std::map<std::string, Tensor>;

/// The elements as float32, whatever numeric type they have.
std::vector<float> to_float(const Tensor& tensor);
/// The elements converted to another numeric type, rounding to nearest even and saturating.
Tensor convert(const Tensor& tensor, DType dtype);

}  // namespace quench
