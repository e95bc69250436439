// SPDX-License-Identifier: Apache-2.0
// Samples from Python: arrays, dicts, tuples, and anything that can be iterated over.
#pragma once

#include <pybind11/pybind11.h>

#include "quench/data.h"
#include "quench/given_samples.h"

namespace quench::python {

namespace py = pybind11;

/// A text or os.PathLike.
bool is_path(const py::handle& object);
std::string to_path(const py::handle& object);

/// How much is taken of what can be iterated over.
struct Taken {
  std::int64_t samples = 0;  ///< 0: all
  std::int64_t items = 0;    ///< likewise
  bool rows = false;         ///< samples may be rows of numbers that take the input's shape
};

/// Sets where samples come from: a path as the command line takes it, an array (its rows), a dict
/// or a tuple of arrays, or an iterable of these: batches, or samples without a batch dimension.
/// What an iterable makes as it goes is copied; arrays, and lists of them, are used where they lie.
/// `inputs` are those of the model, by which samples are counted.
void set_data(DataOptions& options, const py::object& data, const std::vector<Value>& inputs,
              const Taken& taken);
/// Class indices from a path or an array.
void set_labels(DataOptions& options, const py::object& labels);

}  // namespace quench::python
