// SPDX-License-Identifier: Apache-2.0
// Reads a tensor: a view of the mapped file where that can be, a copy where it cannot.
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "base/file.h"
#include "base/format.h"
#include "formats/onnx/onnx.pb.h"
#include "formats/onnx/tensors.h"
#include "formats/onnx/wire.h"

namespace quench::onnx {
namespace {

static_assert(std::endian::native == std::endian::little, "ONNX stores little-endian bytes");

constexpr std::int32_t kExternal = 1;

/// The alignment that `Tensor::data` promises.
std::size_t alignment_of(DType dtype) {
  return std::clamp<std::size_t>(static_cast<std::size_t>(info(dtype).bits) / 8, 1, 8);
}

bool is_aligned(const std::byte* bytes, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(bytes) % alignment == 0;
}

/// Has the system provide the pages of a large buffer at once; a fault each costs half as much
/// again.
void populate([[maybe_unused]] std::byte* begin, [[maybe_unused]] std::size_t size) {
#ifdef MADV_POPULATE_WRITE
  constexpr std::uintptr_t kPage = 4096;  // a larger page makes this fail, which costs nothing
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const std::size_t skipped = (kPage - address % kPage) % kPage;
  if (size < skipped + 64 * kPage) return;
  (void)::madvise(begin + skipped, (size - skipped) / kPage * kPage, MADV_POPULATE_WRITE);
#endif
}

/// A copy of mapped bytes, which then need not stay in memory.
Stored copy_of(std::span<const std::byte> bytes) {
  constexpr std::align_val_t kAlignment{64};
  constexpr std::size_t kStep = std::size_t{4} << 20;
  auto* copy = static_cast<std::byte*>(::operator new(bytes.size(), kAlignment));
  const std::shared_ptr<std::byte> owner(copy,
                                         [](std::byte* p) { ::operator delete(p, kAlignment); });
  populate(copy, bytes.size());
  for (std::size_t done = 0; done < bytes.size(); done += kStep) {
    const auto part = bytes.subspan(done, std::min(kStep, bytes.size() - done));
    std::memcpy(copy + done, part.data(), part.size());
    release_pages(part);
  }
  return {{copy, bytes.size()}, owner};
}

/// A file may hold any byte for a bool; C++ may not.
bool has_odd_bools(DType dtype, std::span<const std::byte> bytes) {
  return dtype == DType::Bool &&
         std::ranges::any_of(bytes, [](std::byte b) { return b > std::byte{1}; });
}

std::int64_t count_of(const Shape& shape) {
  const auto count = num_elements(shape);
  if (!count) {
    fail(ErrorKind::BadModel,
         "its shape {} is not possible: a dimension is negative or the size "
         "overflows",
         to_string(shape));
  }
  return *count;
}

Tensor read_strings(const TensorProto& proto, Shape shape, std::int64_t count) {
  if (proto.string_data_size() != count) {
    fail(ErrorKind::BadModel, "it has {} strings, but its shape {} takes {}",
         proto.string_data_size(), to_string(shape), count);
  }
  return Tensor::strings(std::move(shape),
                         {proto.string_data().begin(), proto.string_data().end()});
}

void check_size(const char* what, std::uint64_t size, std::uint64_t expected, DType dtype,
                const Shape& shape) {
  if (size == expected) return;
  fail(ErrorKind::BadModel, "its {} has {} bytes, but {} of shape {} takes {}; the file is damaged",
       what, size, name_of(dtype), to_string(shape), expected);
}

/// Whether a packed typed field holds the type's elements as they lie in memory.
bool fits_field(DType dtype, std::uint32_t field) {
  if (field == kFloatData) return dtype == DType::Float32 || dtype == DType::Complex64;
  return dtype == DType::Float64 || dtype == DType::Complex128;
}

Tensor read_lifted(const TensorProto& proto, DType dtype, Shape shape, std::uint64_t expected,
                   const Source& source) {
  const Payload& place = proto.quench_payload();
  const bool raw = place.field() == kRawData;
  if (!raw && !fits_field(dtype, place.field())) {
    fail(ErrorKind::BadModel, "its elements are {}, but it keeps them in the field of another type",
         name_of(dtype));
  }
  check_size(raw ? "raw data" : "typed data", place.size(), expected, dtype, shape);
  return tensor_over(dtype, std::move(shape), source.inside(place.position(), place.size()),
                     source.options());
}

/// How a tensor that is kept as a part lay in the file it came from.
ConstantForm form_of(const TensorProto& proto) {
  const auto form = static_cast<ConstantForm>(proto.quench_form());
  if (form != ConstantForm::Typed) {
    fail(ErrorKind::BadModel, "its form {} is not known", proto.quench_form());
  }
  return form;
}

/// Weights stay in their file until they are wanted; what is small is wanted by many.
Tensor read_outside(const TensorProto& proto, DType dtype, Shape shape, std::uint64_t expected,
                    Source& source) {
  const std::size_t alignment = source.options().align ? alignment_of(dtype) : 1;
  auto bytes = source.outside(proto, expected, alignment);
  if (expected == 0) return Tensor::zeros(dtype, std::move(shape));
  if (expected > Source::kSmall && dtype != DType::Bool) {
    return Tensor::stored(dtype, std::move(shape), std::move(bytes));
  }
  auto now = bytes->hold();
  const std::span<const std::byte> view(now.get(), static_cast<std::size_t>(expected));
  return tensor_over(dtype, std::move(shape), {view, std::move(now)}, source.options());
}

}  // namespace

Tensor tensor_over(DType dtype, Shape shape, Stored stored, const ReadOptions& options) {
  if (has_odd_bools(dtype, stored.bytes)) {
    Tensor result = Tensor::zeros(dtype, std::move(shape));
    std::ranges::transform(stored.bytes, result.mutable_bytes().begin(), [](std::byte b) {
      return b == std::byte{0} ? std::byte{0} : std::byte{1};
    });
    return result;
  }
  if (options.align && !is_aligned(stored.bytes.data(), alignment_of(dtype)) &&
      !stored.bytes.empty()) {
    stored = copy_of(stored.bytes);
  }
  return Tensor::view(dtype, std::move(shape), stored.bytes, std::move(stored.owner));
}

std::optional<ReadTensor> read_tensor(const TensorProto& proto, Source& source) {
  const auto dtype = static_cast<DType>(proto.data_type());
  if (dtype == DType::Undefined) {
    fail(ErrorKind::BadModel, "it has no element type");
  }
  if (info(dtype).dtype == DType::Undefined) return std::nullopt;
  Shape shape(proto.dims().begin(), proto.dims().end());
  const std::int64_t count = count_of(shape);
  if (dtype == DType::String) {
    return ReadTensor{read_strings(proto, std::move(shape), count), ConstantForm::Typed};
  }
  const auto size = num_bytes(dtype, count);
  if (!size) {
    fail(ErrorKind::BadModel, "its shape {} is too large for {}", to_string(shape), name_of(dtype));
  }
  if (proto.data_location() == kExternal) {
    return ReadTensor{read_outside(proto, dtype, std::move(shape), *size, source),
                      ConstantForm::External};
  }
  if (proto.has_quench_form()) {
    return ReadTensor{read_lifted(proto, dtype, std::move(shape), *size, source), form_of(proto)};
  }
  if (proto.has_quench_payload()) {
    const bool raw = proto.quench_payload().field() == kRawData;
    return ReadTensor{read_lifted(proto, dtype, std::move(shape), *size, source),
                      raw ? ConstantForm::Raw : ConstantForm::Typed};
  }
  return ReadTensor{from_typed(proto, dtype, std::move(shape), count), ConstantForm::Typed};
}

void clear_data(TensorProto& proto) {
  proto.clear_dims();
  proto.clear_data_type();
  proto.clear_float_data();
  proto.clear_int32_data();
  proto.clear_string_data();
  proto.clear_int64_data();
  proto.clear_raw_data();
  proto.clear_double_data();
  proto.clear_uint64_data();
  proto.clear_external_data();
  proto.clear_data_location();
  proto.clear_quench_payload();
  proto.clear_quench_form();
}

void restore_data(TensorProto& proto, const Source& source) {
  if (!proto.has_quench_payload()) return;
  const Payload place = proto.quench_payload();
  proto.clear_quench_payload();
  const auto bytes = source.inside(place.position(), place.size()).bytes;
  if (place.field() == kRawData) {
    proto.set_raw_data(bytes.data(), bytes.size());
    return;
  }
  std::string field;
  append_header(field, place.field(), bytes.size());
  append_bytes(field, bytes);
  if (!proto.MergeFromString(field)) fail(ErrorKind::BadModel, "its typed data is damaged");
}

}  // namespace quench::onnx
