// SPDX-License-Identifier: Apache-2.0
// PaddleSlim's names for files and operators.
#include "compat/paddleslim/names.h"

#include <filesystem>

#include "base/format.h"

namespace quench::compat {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

std::string paddle_model_path(const std::string& model_dir, const std::string& model_filename) {
  const fs::path folder = model_dir;
  if (!model_filename.empty()) return folder / model_filename;
  std::error_code error;
  if (!fs::is_directory(folder, error)) return model_dir;
  Names found;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == ".onnx") found.push_back(entry->path().string());
  }
  if (error) {
    fail(ErrorKind::Io, "cannot list model_dir '{}': {}", model_dir, error.message());
  }
  if (found.size() == 1) return found.front();
  fail(ErrorKind::Usage, "model_dir '{}' holds {} *.onnx files; say which by model_filename",
       model_dir, found.size());
}

const std::map<std::string, Names>& paddle_types() {
  static const std::map<std::string, Names> types = {
      {"conv2d", {"Conv"}},
      {"depthwise_conv2d", {"Conv"}},
      {"conv2d_transpose", {"ConvTranspose"}},
      {"mul", {"MatMul", "Gemm"}},
      {"matmul", {"MatMul", "Gemm"}},
      {"matmul_v2", {"MatMul", "Gemm"}},
      {"pool2d", {"AveragePool", "MaxPool", "GlobalAveragePool"}},
      {"elementwise_add", {"Add"}},
      {"elementwise_sub", {"Sub"}},
      {"elementwise_mul", {"Mul"}},
      {"concat", {"Concat"}},
      {"softmax", {"Softmax"}},
      {"relu", {"Relu"}},
      {"relu6", {"Clip"}},
      {"clip", {"Clip"}},
      {"leaky_relu", {"LeakyRelu"}},
      {"sigmoid", {"Sigmoid"}},
      {"tanh", {"Tanh"}},
      {"hard_swish", {"HardSwish"}},
      {"hard_sigmoid", {"HardSigmoid"}},
      {"gelu", {"Gelu"}},
      {"layer_norm", {"LayerNormalization"}},
      {"split", {"Split"}},
      {"reshape2", {"Reshape"}},
      {"transpose2", {"Transpose"}},
      {"squeeze2", {"Squeeze"}},
      {"unsqueeze2", {"Unsqueeze"}},
      {"slice", {"Slice"}},
      {"nearest_interp_v2", {"Resize"}},
      {"bilinear_interp_v2", {"Resize"}},
  };
  return types;
}

}  // namespace quench::compat
