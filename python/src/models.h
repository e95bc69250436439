// SPDX-License-Identifier: Apache-2.0
// Models as Python sees them, and the files that jobs read and write for it.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <string>
#include <vector>

#include "quench/model.h"

namespace quench::python {

namespace py = pybind11;

/// A model that Python objects share; nothing changes it.
using SharedModel = std::shared_ptr<const Model>;

/// The file of a model: the one whose path was given, or a temporary one of a model in memory.
class ModelFile {
 public:
  /// A path, or a Model.
  explicit ModelFile(const py::handle& model);
  /// Where a job may write; empty: a temporary place.
  static ModelFile to_write(const std::string& path);
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;
  ModelFile(ModelFile&& other) noexcept;
  ModelFile& operator=(ModelFile&&) = delete;
  ~ModelFile();

  const std::string& path() const { return path_; }
  bool is_temporary() const { return !folder_.empty(); }

 private:
  ModelFile() = default;
  void make_temporary();

  std::string path_;
  std::string folder_;
};

/// The inputs that a run must be fed with.
std::vector<Value> inputs_of(const Model& model);
std::vector<Value> inputs_of(const std::string& path);

void bind_models(py::module_& module);

}  // namespace quench::python
