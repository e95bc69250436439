// SPDX-License-Identifier: Apache-2.0
// Paddle's files on disk: a program and its parameters beside it.
#pragma once

#include <memory>
#include <string>

#include "base/file.h"
#include "formats/locate.h"
#include "quench/model.h"

namespace quench::paddle::write {

/// Writes both aside: a serialized program, or PIR's JSON.
std::unique_ptr<Staged> stage_program(const Model& model, const ModelFiles& files,
                                      const SaveOptions& options);
/// Throws Error(Unsupported) for operators that have no counterpart.
void expect_program(const Model& model);
void expect_pir(const Model& model);
std::unique_ptr<Staged> stage_pir(const Model& model, const ModelFiles& files,
                                  const SaveOptions& options);

}  // namespace quench::paddle::write
