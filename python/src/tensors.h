// SPDX-License-Identifier: Apache-2.0
// Arrays of NumPy and tensors, without copies.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "quench/tensor.h"

namespace quench::python {

namespace py = pybind11;

/// The elements of anything that NumPy makes an array of; those of a plain array are not copied.
/// Throws Error(BadData) for elements that are no numbers.
Tensor to_tensor(const py::handle& array);
/// A dict of arrays.
TensorMap to_tensors(const py::dict& arrays);
/// A read-only array over the tensor's own bytes; types that NumPy does not have are widened.
py::object to_array(const Tensor& tensor);
py::dict to_arrays(const TensorMap& tensors);

void bind_tensors(py::module_& module);

}  // namespace quench::python
