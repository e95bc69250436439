// SPDX-License-Identifier: Apache-2.0
// Reads and writes records: version, level of detail, version, description, elements.
#include "formats/paddle/params.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/format.h"
#include "formats/onnx/tensors.h"
#include "formats/paddle/framework.pb.h"
#include "formats/paddle/types.h"

namespace quench::paddle {
namespace {

constexpr std::uint64_t kMaxLodLevels = 16;
constexpr std::int32_t kMaxDescBytes = 4096;
constexpr int kMaxRank = 64;

/// Takes bytes off the front of a file; knows when there are too few.
class Cursor {
 public:
  explicit Cursor(const onnx::Stored& file) : file_(file), rest_(file.bytes) {}

  std::span<const std::byte> take(std::uint64_t size) {
    if (size > rest_.size()) {
      fail(
          ErrorKind::BadModel,
          "the file of parameters ends inside this one: {} bytes are wanted and {} are left; it is "
          "cut off, or belongs to another model",
          size, rest_.size());
    }
    const auto taken = rest_.first(static_cast<std::size_t>(size));
    rest_ = rest_.subspan(static_cast<std::size_t>(size));
    return taken;
  }
  template <typename T>
  T number() {
    T value{};
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  onnx::Stored stored(std::uint64_t size) { return {take(size), file_.owner}; }
  std::size_t left() const noexcept { return rest_.size(); }

 private:
  const onnx::Stored& file_;
  std::span<const std::byte> rest_;
};

void read_version(Cursor& cursor) {
  const auto version = cursor.number<std::uint32_t>();
  if (version == 0) return;
  fail(ErrorKind::BadModel,
       "its record has version {}, and 0 is the only one known; the file is damaged, belongs to "
       "another model or was written by a newer Paddle",
       version);
}

VarType::TensorDesc read_desc(Cursor& cursor) {
  const auto size = cursor.number<std::int32_t>();
  VarType::TensorDesc desc;
  const bool possible = size >= 0 && size <= kMaxDescBytes;
  const auto bytes = cursor.take(possible ? static_cast<std::uint64_t>(size) : 0);
  if (!possible || !desc.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) ||
      desc.dims_size() > kMaxRank) {
    fail(ErrorKind::BadModel,
         "its record has no description that can be read; the file of parameters is damaged or "
         "belongs to another model");
  }
  return desc;
}

void check_elements(const Parameter& parameter, std::int64_t found, const Shape& shape) {
  if (parameter.elements < 0 || parameter.elements == found) return;
  fail(ErrorKind::BadModel,
       "the program says {} elements, the file of parameters has {} ({}); the file belongs to "
       "another model",
       parameter.elements, found, to_string(shape));
}

Tensor read_record(Cursor& cursor, const Parameter& parameter) {
  read_version(cursor);
  const auto levels = cursor.number<std::uint64_t>();
  if (levels > kMaxLodLevels) {
    fail(ErrorKind::BadModel, "its record claims {} levels of detail; the file is damaged", levels);
  }
  for (std::uint64_t i = 0; i < levels; ++i) cursor.take(cursor.number<std::uint64_t>());
  read_version(cursor);
  const VarType::TensorDesc desc = read_desc(cursor);
  const DType dtype = dtype_of(desc.data_type());
  Shape shape(desc.dims().begin(), desc.dims().end());
  const auto count = num_elements(shape);
  const auto size = count ? num_bytes(dtype, *count) : std::nullopt;
  if (!size) {
    fail(ErrorKind::BadModel, "its shape {} is not possible; the file of parameters is damaged",
         to_string(shape));
  }
  check_elements(parameter, *count, shape);
  return onnx::tensor_over(dtype, std::move(shape), cursor.stored(*size), {});
}

Tensor read_named(Cursor& cursor, const Parameter& parameter) {
  try {
    return read_record(cursor, parameter);
  } catch (Error& error) {
    throw error.in(format("parameter '{}'", parameter.name));
  }
}

void expect_end(const Cursor& cursor, std::size_t parameters) {
  if (cursor.left() == 0) return;
  fail(ErrorKind::BadModel,
       "the file of parameters has {} bytes more than the {} of the program take; it belongs to "
       "another model or is damaged",
       cursor.left(), parameters);
}

}  // namespace

std::vector<Tensor> read_combined(const onnx::Stored& file, std::span<const Parameter> parameters) {
  std::vector<std::size_t> order(parameters.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return parameters[i].name; });
  std::vector<Tensor> tensors(parameters.size());
  Cursor cursor(file);
  for (const std::size_t i : order) tensors[i] = read_named(cursor, parameters[i]);
  expect_end(cursor, parameters.size());
  return tensors;
}

Tensor read_single(const onnx::Stored& file, const Parameter& parameter) {
  Cursor cursor(file);
  Tensor tensor = read_named(cursor, parameter);
  expect_end(cursor, 1);
  return tensor;
}

std::string record_header(const Tensor& tensor) {
  const TypeRow* row = type_row(tensor.dtype());
  if (row == nullptr) {
    fail(ErrorKind::Unsupported, "Paddle has no parameters of {}", name_of(tensor.dtype()));
  }
  VarType::TensorDesc desc;
  desc.set_data_type(row->number);
  for (const std::int64_t dim : tensor.shape()) desc.add_dims(dim);
  const std::string text = desc.SerializeAsString();
  constexpr std::size_t kBefore = sizeof(std::uint32_t) + sizeof(std::uint64_t) +
                                  sizeof(std::uint32_t);  // versions are 0, no levels of detail
  std::string header(kBefore, '\0');
  const auto size = static_cast<std::int32_t>(text.size());
  header.append(reinterpret_cast<const char*>(&size), sizeof(size));
  return header + text;
}

}  // namespace quench::paddle
