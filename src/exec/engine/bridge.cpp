// SPDX-License-Identifier: Apache-2.0
// Shares storage between our tensors and libtorch's.
#include "exec/engine/bridge.h"

#include "base/format.h"

namespace quench::exec {

std::optional<at::ScalarType> scalar_type(DType dtype) {
  switch (dtype) {
    case DType::Float32:
      return at::kFloat;
    case DType::Float64:
      return at::kDouble;
    case DType::Float16:
      return at::kHalf;
    case DType::BFloat16:
      return at::kBFloat16;
    case DType::Int8:
      return at::kChar;
    case DType::UInt8:
      return at::kByte;
    case DType::Int16:
      return at::kShort;
    case DType::Int32:
    case DType::UInt16:  // libtorch has none: held in more bits
      return at::kInt;
    case DType::Int64:
      return at::kLong;
    case DType::Bool:
      return at::kBool;
    case DType::Complex64:
      return at::kComplexFloat;
    case DType::Complex128:
      return at::kComplexDouble;
    default:
      return std::nullopt;
  }
}

DType dtype_of(at::ScalarType type) {
  for (const DTypeInfo& row : all_dtypes()) {
    if (row.dtype != DType::UInt16 && scalar_type(row.dtype) == type) return row.dtype;
  }
  return DType::Undefined;
}

at::Tensor to_torch(const Tensor& given) {
  const Tensor tensor = given.held();
  const auto type = scalar_type(tensor.dtype());
  if (!type) {
    fail(ErrorKind::Unsupported, "the engine cannot compute with {} tensors",
         name_of(tensor.dtype()));
  }
  if (tensor.dtype() == DType::UInt16) return to_torch(convert(tensor, DType::Int32));
  if (tensor.size() == 0) return at::empty(tensor.shape(), *type);
  // libtorch asks for a mutable pointer; kernels never write to their inputs.
  auto* data = const_cast<std::byte*>(tensor.bytes().data());
  return at::from_blob(
      data, tensor.shape(), [owner = tensor.owner()](void*) mutable { owner.reset(); },
      at::TensorOptions(*type));
}

Tensor from_torch(const at::Tensor& tensor) {
  const auto dense = std::make_shared<at::Tensor>(tensor.contiguous());
  const auto* data = static_cast<const std::byte*>(dense->data_ptr());
  return Tensor::view(dtype_of(dense->scalar_type()), dense->sizes().vec(),
                      {data, static_cast<std::size_t>(dense->nbytes())}, dense);
}

}  // namespace quench::exec
