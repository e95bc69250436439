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
/// Throws Error(Unsupported) that names every operator which cannot be written.
std::unique_ptr<Staged> stage_file(const Model& model, const std::string& path);

}  // namespace quench::tflite
