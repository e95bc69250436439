// SPDX-License-Identifier: Apache-2.0
// Attributes and tensors of MindIR's messages.
#include "formats/mindir/entry.h"

#include <array>
#include <cstring>

#include "base/format.h"

namespace quench::mindir {
namespace {

constexpr int kMaxDepth = 16;
constexpr int kFloat = 1, kString = 8, kBool = 9, kDouble = 11, kTuple = 20, kList = 21;

Entry integer(std::int64_t number) {
  Entry result;
  result.kind = Entry::Kind::Int;
  result.number = number;
  return result;
}

Entry real(double number) {
  Entry result;
  result.kind = Entry::Kind::Real;
  result.real = number;
  return result;
}

Entry text(const std::string& letters) {
  Entry result;
  result.kind = Entry::Kind::Text;
  result.text = letters;
  return result;
}

Entry tensor(const wire::TensorData& data) {
  Entry result;
  result.kind = Entry::Kind::Tensor;
  result.tensor = tensor_of(data);
  return result;
}

/// One of a kind in a list, or a single one: files of different ages have either.
template <typename List, typename Make>
Entry listed(const List& list, int depth, const Make& make) {
  if (list.size() == 1 && depth > 0) return make(list[0]);
  Entry result;
  result.kind = Entry::Kind::List;
  for (const auto& each : list) result.list.push_back(make(each));
  return result;
}

}  // namespace

Entry entry_of(const wire::Attribute& from, int depth) {
  if (depth > kMaxDepth) {
    fail(ErrorKind::BadModel, "tuples lie more than {} deep, which no model's do", kMaxDepth);
  }
  if (from.type() == kTuple || from.type() == kList || from.values_size() > 0) {
    Entry result;
    result.kind = Entry::Kind::List;
    for (const wire::Attribute& each : from.values()) {
      result.list.push_back(entry_of(each, depth + 1));
    }
    return result;
  }
  if (from.has_i()) return integer(from.i());
  if (from.has_f() && from.type() == kFloat) return real(from.f());
  if (from.has_d() && from.type() == kDouble) return real(from.d());
  if (from.has_s()) return text(from.s());
  if (from.ints_size() > 0) return listed(from.ints(), depth, integer);
  if (from.floats_size() > 0) return listed(from.floats(), depth, real);
  if (from.doubles_size() > 0) return listed(from.doubles(), depth, real);
  if (from.strings_size() > 0) return listed(from.strings(), depth, text);
  if (from.has_t()) return tensor(from.t());
  if (from.tensors_size() == 1) return tensor(from.tensors(0));
  if (from.type() == kBool || (from.type() > kFloat && from.type() < kString)) return integer(0);
  return {};
}

Entries entries_of(const google::protobuf::RepeatedPtrField<wire::Attribute>& attributes) {
  Entries result;
  for (const wire::Attribute& each : attributes) {
    // What a node makes is described by tensors without elements, which are no argument.
    const bool tuple = each.values_size() > 0 && each.values(0).tensors_size() > 0;
    if (each.name() == "shape" && (each.tensors_size() > 0 || tuple)) continue;
    result.insert_or_assign(each.name(), entry_of(each));
  }
  return result;
}

DType dtype_of(int number) noexcept {
  constexpr int kFloat64 = 17;
  if (number == kFloat64) return DType::Float64;
  if (number <= 0 || number > static_cast<int>(DType::BFloat16)) return DType::Undefined;
  return static_cast<DType>(number);
}

namespace {

struct Argument {
  std::int64_t number;
  DType dtype;
};

constexpr auto kArguments = std::to_array<Argument>({{30, DType::Bool},
                                                     {32, DType::Int8},
                                                     {33, DType::Int16},
                                                     {34, DType::Int32},
                                                     {35, DType::Int64},
                                                     {37, DType::UInt8},
                                                     {38, DType::UInt16},
                                                     {39, DType::UInt32},
                                                     {40, DType::UInt64},
                                                     {42, DType::Float16},
                                                     {43, DType::Float32},
                                                     {44, DType::Float64},
                                                     {45, DType::BFloat16}});

}  // namespace

DType dtype_of_argument(std::int64_t number) noexcept {
  for (const Argument& each : kArguments) {
    if (each.number == number) return each.dtype;
  }
  return DType::Undefined;
}

std::int64_t argument_of(DType dtype) {
  for (const Argument& each : kArguments) {
    if (each.dtype == dtype) return each.number;
  }
  fail(ErrorKind::Unsupported, "MindIR has no elements of type {}", name_of(dtype));
}

int number_of(DType dtype) {
  (void)argument_of(dtype);
  return static_cast<int>(dtype);
}

Shape shape_of(const wire::TensorData& data) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  constexpr int kMaxRank = 8;
  Shape shape(data.dims().begin(), data.dims().end());
  const auto count = num_elements(shape);
  if (data.dims_size() > kMaxRank || !count || *count > kMost) {
    fail(ErrorKind::BadModel, "the tensor '{}' has the shape {}", data.name(), to_string(shape));
  }
  return shape;
}

Tensor tensor_of(const wire::TensorData& data, std::string_view raw) {
  const DType dtype = dtype_of(data.data_type());
  const Shape shape = shape_of(data);
  if (dtype == DType::Undefined || dtype == DType::String) {
    fail(ErrorKind::Unsupported, "the tensor '{}' has elements of type {}, which is not read",
         data.name(), data.data_type());
  }
  const auto bytes = num_bytes(dtype, num_elements(shape).value_or(0));
  if (!bytes || *bytes != raw.size()) {
    fail(
        ErrorKind::BadModel,
        "the tensor '{}' of type {} and shape {} has {} bytes; are its parameters those of another "
        "model?",
        data.name(), name_of(dtype), to_string(shape), raw.size());
  }
  Tensor result = Tensor::zeros(dtype, shape);
  std::memcpy(result.mutable_bytes().data(), raw.data(), raw.size());
  return result;
}

namespace {

template <typename T, typename List>
Tensor of_list(const wire::TensorData& data, const List& list) {
  const std::vector<T> numbers(list.begin(), list.end());
  const auto bytes = std::as_bytes(std::span(numbers));
  return tensor_of(data, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace

Tensor tensor_of(const wire::TensorData& data) {
  const DType dtype = dtype_of(data.data_type());
  const bool raw = data.has_raw_data() && !data.raw_data().empty();
  if (!raw && data.float_data_size() > 0 && dtype == DType::Float32) {
    return of_list<float>(data, data.float_data());
  }
  if (!raw && data.int32_data_size() > 0 && dtype == DType::Int32) {
    return of_list<std::int32_t>(data, data.int32_data());
  }
  if (!raw && data.int64_data_size() > 0 && dtype == DType::Int64) {
    return of_list<std::int64_t>(data, data.int64_data());
  }
  return tensor_of(data, data.raw_data());
}

}  // namespace quench::mindir
