// SPDX-License-Identifier: Apache-2.0
// Why a GPU cannot be used, in a sentence.
#pragma once

#include <string>
#include <string_view>

#include "quench/error.h"

namespace quench::exec {

/// For what libtorch says, at length, of the device of this name.
Error device_error(const std::string& name, std::string_view reason);

/// Whether what libtorch, CUDA or one of its libraries says is that the GPU's memory is full.
bool gpu_is_full(std::string_view reason);

}  // namespace quench::exec
