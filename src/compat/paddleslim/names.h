// SPDX-License-Identifier: Apache-2.0
// What PaddleSlim's parameters that name files and operators stand for.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace quench::compat {

/// What Paddle calls ONNX's operators.
const std::map<std::string, std::vector<std::string>>& paddle_types();
/// The model that `model_dir` and `model_filename` name. Throws Error(Usage) when it is not clear.
std::string paddle_model_path(const std::string& model_dir, const std::string& model_filename);

}  // namespace quench::compat
