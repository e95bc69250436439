// SPDX-License-Identifier: Apache-2.0
// Byte tensors and the loops over them.
#pragma once

#include <ATen/EmptyTensor.h>

#include <array>

#include "exec/engine/int8/byte_params.h"
#include "exec/engine/int8/loops.h"
#include "exec/engine/parallel.h"

namespace quench::exec {

/// Bytes that are worth a second thread, which costs 1.6 us: where each takes about 0.2 ns, and
/// where they are only looked up.
inline constexpr std::int64_t kByteGrain = 1 << 14;
inline constexpr std::int64_t kLookUpGrain = 1 << 17;

/// New memory, without the way through libtorch's dispatcher.
inline at::Tensor new_tensor(at::IntArrayRef sizes, at::ScalarType type, at::MemoryFormat format) {
  return at::Tensor(at::detail::empty_cpu(sizes, type, false, format));
}
/// The same laid out as a dense tensor is.
inline at::Tensor new_alike(const at::Tensor& dense, at::ScalarType type) {
  return at::Tensor(at::detail::empty_strided_cpu(dense.sizes(), dense.strides(), type));
}

inline const std::uint8_t* bytes_of(const at::Tensor& tensor) {
  return static_cast<const std::uint8_t*>(tensor.data_ptr());
}
inline std::uint8_t* mutable_bytes_of(at::Tensor& tensor) {
  return static_cast<std::uint8_t*>(tensor.data_ptr());
}

inline ByteStore byte_store(const ByteParams& out) {
  return {.zero = out.flipped_zero(), .flip = out.flip()};
}
inline ByteLoad byte_load(const ByteParams& in, float step) {
  return {.scale = in.scale / step, .shift = in.flipped_zero(), .flip = in.flip()};
}

/// a + b over the scale of `out`.
ByteSum byte_sum(const ByteParams& a, const ByteParams& b, const ByteParams& out);

/// How bytes are stored within the bounds that an activation ("relu", "clip" or none) leaves.
ByteStore clamped_store(const ByteParams& out, std::string_view activation, float low, float high);

/// The sum of two byte tensors of the same shape, each with its parameters.
using ByteSumFunction = std::function<at::Tensor(const at::Tensor& a, const at::Tensor& b)>;
ByteSumFunction make_byte_sum(const ByteParams& a, const ByteParams& b, const ByteParams& out,
                              const ByteStore& store);

/// A tensor whose elements can be read in the order in which they lie.
at::Tensor dense(const at::Tensor& x);

/// What becomes of each of the 256 bytes.
class ByteTable {
 public:
  /// `results` are 256 bytes, for the source's values from the least to the greatest.
  ByteTable(at::ScalarType from, const at::Tensor& results);
  at::Tensor operator()(const at::Tensor& x) const;
  /// By the source's bytes as they lie in memory.
  const std::array<std::uint8_t, 256>& entries() const noexcept { return entries_; }

 private:
  std::array<std::uint8_t, 256> entries_{};
  at::ScalarType from_;
  at::ScalarType to_;
};

/// All 256 values of a byte type, from the least to the greatest.
at::Tensor all_bytes(at::ScalarType type);
/// From one scale and zero point to others.
ByteTable requantising_table(const ByteParams& from, const ByteParams& to);
/// The dequantised floats of a byte tensor, laid out alike.
at::Tensor dequantize_bytes(const at::Tensor& x, const ByteParams& params);
/// A quantised float tensor, laid out alike.
at::Tensor quantize_floats(const at::Tensor& x, const ByteParams& params);
/// A float tensor as DynamicQuantizeLinear quantises it.
struct DynamicBytes {
  at::Tensor bytes;
  ByteParams params;
};
DynamicBytes dynamic_quantize(const at::Tensor& x);
/// A tensor of one number, without the way through libtorch's dispatcher.
template <typename T>
at::Tensor one_number(T value, at::ScalarType type) {
  at::Tensor result = new_tensor({}, type, at::MemoryFormat::Contiguous);
  *static_cast<T*>(result.data_ptr()) = value;
  return result;
}
/// Tensors joined along an axis, channels-last where they are.
at::Tensor concat_bytes(const std::vector<at::Tensor>& parts, std::int64_t axis);

}  // namespace quench::exec
