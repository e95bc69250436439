// SPDX-License-Identifier: Apache-2.0
// Where a model lies: a file, a folder that holds one, or a file and the one of its parameters.
#pragma once

#include <string>

namespace quench {

/// The files that a path names.
struct ModelFiles {
  std::string model;   ///< what holds the graph
  std::string params;  ///< of parameters, where it is named; else ""
};

/// The files of a model that is to be written at `path`, which may name the one of parameters
/// behind a comma: that lies beside the model unless its path is absolute.
ModelFiles named_files(const std::string& path);

/// The files of `path`: a file; a folder with one model in it; or either, a comma, and the file of
/// parameters, as `named_files` has it. Throws Error(BadModel) for
/// a folder that holds no model or several.
ModelFiles locate_model(const std::string& path);

}  // namespace quench
