// SPDX-License-Identifier: Apache-2.0
// A TFLite file as a model.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "quench/model.h"

namespace quench {
class Staged;
}

namespace quench::tflite {

Model read_bytes(std::span<const std::byte> file, std::shared_ptr<const void> owner);
/// A model written and read again. Throws Error(Unsupported) that names every operator which cannot
/// be written.
Model as_read(const Model& model);
/// Likewise.
std::unique_ptr<Staged> stage_file(const Model& model, const std::string& path);

}  // namespace quench::tflite
