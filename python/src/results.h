// SPDX-License-Identifier: Apache-2.0
// What jobs find, as Python sees it.
#pragma once

#include <pybind11/pybind11.h>

namespace quench::python {

namespace py = pybind11;

void bind_results(py::module_& module);

}  // namespace quench::python
