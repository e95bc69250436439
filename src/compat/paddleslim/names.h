// SPDX-License-Identifier: Apache-2.0
// What PaddleSlim's parameters stand for.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "quench/paddleslim.h"

namespace quench::compat {

/// What Paddle calls ONNX's operators, as layers (Conv2D) and as operators (conv2d).
const std::map<std::string, std::vector<std::string>>& paddle_types();
/// Types by Paddle's names as ONNX's, each once; those that Paddle does not know are ONNX's.
std::vector<std::string> onnx_names(const std::vector<std::string>& types);
/// Whether the model at a path, as `model_path` makes it, is Paddle's.
bool is_paddle(const std::string& path);
/// Whether one that is written there will be.
bool becomes_paddle(const std::string& path);
/// `save_model_filename` and `save_params_filename`.
struct SaveNames {
  std::string model;
  std::string params;
};
/// Where a model goes in a folder, which is made where there is none.
std::string save_path(const std::string& folder, const SaveNames& names, bool paddle);

/// The job that quantises as a configuration says, for a Paddle program or for ONNX. Throws
/// Error(Usage) that names the parameter.
QuantizeOptions job_of(const PtqConfig& config, bool paddle);
/// Samples that `batch_nums` batches hold, where there are no more than `limit`; 0: all.
std::int64_t sample_limit(const PtqConfig& config, std::int64_t limit);

}  // namespace quench::compat
