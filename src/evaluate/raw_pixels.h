// SPDX-License-Identifier: Apache-2.0
// Whether pixels from 0 to 255 are what a model's first layer was trained on.
#pragma once

#include <optional>
#include <string>

#include "quench/data.h"
#include "quench/model.h"

namespace quench::evaluation {

/// A sentence where samples are raw pixels and the first layer expects smaller numbers. It runs
/// that layer alone, on few samples, and nothing where mean or std were given or samples are
/// tensors. `model_path` is for the command that the sentence names.
std::optional<std::string> doubt_raw_pixels(const Model& model, const std::string& model_path,
                                            const std::string& data_path, SampleSource& source,
                                            const Context& context);

}  // namespace quench::evaluation
