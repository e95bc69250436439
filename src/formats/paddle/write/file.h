// SPDX-License-Identifier: Apache-2.0
// Paddle's files on disk: a program and its parameters beside it.
#pragma once

#include <memory>
#include <string>

#include "base/file.h"
#include "quench/model.h"

namespace quench::paddle::write {

/// The file of parameters that goes with a program at `path`, which may name it behind a comma: it
/// lies beside the program.
std::string params_path(const std::string& path);
/// Writes both aside.
std::unique_ptr<Staged> stage_program(const Model& model, const std::string& path,
                                      const SaveOptions& options);

}  // namespace quench::paddle::write
