// SPDX-License-Identifier: Apache-2.0
// How much room a model takes on disk.
#pragma once

#include <string>

#include "quench/model.h"

namespace quench {

/// Bytes of the file at `path`, from which `model` was read, and of its external data.
std::int64_t bytes_on_disk(const std::string& path, const Model& model);

}  // namespace quench
