// SPDX-License-Identifier: Apache-2.0
// Arrays of NumPy and tensors, by the buffer protocol: no header of NumPy's ties us to a version.
#include "python/src/tensors.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "quench/error.h"

namespace quench::python {
namespace {

/// What the buffer protocol calls an element type; null where it has no word for it.
const char* code_of(DType dtype) {
  static constexpr std::array<std::pair<DType, const char*>, 14> kCodes = {
      {{DType::Float32, "f"},
       {DType::Float64, "d"},
       {DType::Float16, "e"},
       {DType::Int8, "b"},
       {DType::UInt8, "B"},
       {DType::Int16, "h"},
       {DType::UInt16, "H"},
       {DType::Int32, "i"},
       {DType::UInt32, "I"},
       {DType::Int64, "q"},
       {DType::UInt64, "Q"},
       {DType::Bool, "?"},
       {DType::Complex64, "Zf"},
       {DType::Complex128, "Zd"}}};
  for (const auto& [type, code] : kCodes) {
    if (type == dtype) return code;
  }
  return nullptr;
}

DType dtype_of(const std::string& numpy) {
  for (const DTypeInfo& each : all_dtypes()) {
    // One-byte types have no order of bytes: "|u1".
    const bool same = !each.numpy.empty() && each.numpy.substr(1) == numpy.substr(1);
    if (same && code_of(each.dtype) != nullptr) return each.dtype;
  }
  throw Error(ErrorKind::BadData,
              fmt::format("an array of dtype '{}' cannot be fed to a model; give numbers", numpy));
}

py::module_ numpy() { return py::module_::import("numpy"); }

/// A view that Python lends; it is given back under Python's lock, from whichever thread.
class Loan {
 public:
  explicit Loan(const py::object& array) {
    if (PyObject_GetBuffer(array.ptr(), &view_, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
      throw py::error_already_set();
    }
  }
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;
  ~Loan() {
    if (Py_IsInitialized() == 0) return;
    const py::gil_scoped_acquire lock;
    PyBuffer_Release(&view_);
  }
  const Py_buffer& view() const { return view_; }

 private:
  Py_buffer view_{};
};

/// The type that NumPy gets where it does not have the tensor's own.
DType widened(DType dtype) {
  const DTypeInfo& row = info(dtype);
  if (row.is_float) return DType::Float32;
  return row.is_signed ? DType::Int8 : DType::UInt8;
}

py::buffer_info buffer_of(const Tensor& tensor) {
  const auto item = static_cast<py::ssize_t>(info(tensor.dtype()).bits / 8);
  std::vector<py::ssize_t> shape(tensor.shape().begin(), tensor.shape().end());
  std::vector<py::ssize_t> strides(shape.size(), item);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  auto* data = const_cast<std::byte*>(tensor.bytes().data());  // read-only, below
  static std::byte nothing{};
  return {data == nullptr ? &nothing : data,
          item,
          code_of(tensor.dtype()),
          tensor.rank(),
          shape,
          strides,
          true};
}

}  // namespace

Tensor to_tensor(const py::handle& array) {
  py::object plain = numpy().attr("asarray")(array, py::arg("order") = "C");
  std::string type = py::str(plain.attr("dtype").attr("str"));
  if (type.starts_with('>')) {
    type[0] = '<';
    plain = plain.attr("astype")(type);
  }
  const DType dtype = dtype_of(type);
  const auto loan = std::make_shared<const Loan>(plain);
  const Py_buffer& view = loan->view();
  Shape shape(view.shape, view.shape + view.ndim);
  const std::span bytes(static_cast<const std::byte*>(view.buf),
                        static_cast<std::size_t>(view.len));
  return Tensor::view(dtype, std::move(shape), bytes, loan);
}

TensorMap to_tensors(const py::dict& arrays) {
  TensorMap tensors;
  for (const auto& [name, array] : arrays) {
    if (!py::isinstance<py::str>(name)) {
      throw Error(ErrorKind::BadData,
                  fmt::format("names of inputs are strings; got {}", std::string(py::repr(name))));
    }
    try {
      tensors[py::cast<std::string>(name)] = to_tensor(array);
    } catch (Error& error) {
      throw error.in(py::cast<std::string>(name));
    }
  }
  return tensors;
}

py::object to_array(const Tensor& tensor) {
  if (tensor.dtype() == DType::String) {
    py::object flat =
        numpy().attr("array")(py::cast(tensor.strings()), py::arg("dtype") = "object");
    return flat.attr("reshape")(py::tuple(py::cast(tensor.shape())));
  }
  if (code_of(tensor.dtype()) == nullptr) return to_array(convert(tensor, widened(tensor.dtype())));
  return numpy().attr("asarray")(py::cast(tensor));
}

py::dict to_arrays(const TensorMap& tensors) {
  py::dict arrays;
  for (const auto& [name, tensor] : tensors) arrays[py::str(name)] = to_array(tensor);
  return arrays;
}

void bind_tensors(py::module_& module) {
  py::class_<Tensor>(module, "_Tensor", py::buffer_protocol()).def_buffer(&buffer_of);
}

}  // namespace quench::python
