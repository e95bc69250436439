// SPDX-License-Identifier: Apache-2.0
// The parts of the module, each in a file of its own.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <string>

#include "python/src/keywords.h"
#include "python/src/models.h"
#include "quench/analyze.h"

namespace quench::python {

namespace py = pybind11;

void bind_session(py::module_& module);
void bind_jobs(py::module_& module);
void bind_scoring(py::module_& module);
void bind_analyze(py::module_& module);
void bind_paddleslim(py::module_& module);

/// What every job that quantises is called with.
struct JobCall {
  JobCall(Call& the_call, const py::object& the_model, const py::object& data, Keywords& words,
          unsigned job, const QuantizeOptions& defaults = {});

  Call& call;
  ModelFile model;
  QuantizeOptions options;
};

/// A callable that takes a model and returns a number.
EvalFunction eval_function(const py::object& function, Call& call);

/// A docstring: what the function does, its own arguments, and the options of the table.
std::string job_doc(const char* what, const char* own, unsigned job);

}  // namespace quench::python
