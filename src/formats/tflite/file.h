// SPDX-License-Identifier: Apache-2.0
// A TFLite file as a model.
#pragma once

#include <memory>
#include <span>

#include "quench/model.h"

namespace quench::tflite {

Model read_bytes(std::span<const std::byte> file, std::shared_ptr<const void> owner);

}  // namespace quench::tflite
