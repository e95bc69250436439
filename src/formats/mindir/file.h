// SPDX-License-Identifier: Apache-2.0
// A MindIR file as a model, and a model as one.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "formats/locate.h"
#include "quench/model.h"

namespace quench {
class Staged;
}

namespace quench::mindir {

/// `path` is the model's own: files of parameters lie beside it.
Model read_bytes(std::span<const std::byte> file, const std::string& path);
/// The files of parameters that it names.
std::vector<std::string> data_files(const ModelFiles& files);
/// Whether the bytes look like MindIR. Cheap; never throws.
bool is_mindir(std::span<const std::byte> file) noexcept;

/// Throws Error(Unsupported) that names every operator which cannot be written.
void expect_writable(const Model& model);
/// The file of a model.
std::string write_bytes(const Model& model);
std::unique_ptr<Staged> stage_file(const Model& model, const std::string& path);

}  // namespace quench::mindir
