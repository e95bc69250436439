// SPDX-License-Identifier: Apache-2.0
// PaddleSlim's names for files and operators.
#include "compat/paddleslim/names.h"

#include <filesystem>

#include "base/format.h"
#include "formats/locate.h"

namespace quench::compat {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

bool is_paddle(const std::string& path) {
  const fs::path model = locate_model(path).model;
  return model.extension() == ".pdmodel" || model.extension() == ".json" ||
         model.filename() == "__model__";
}

std::string save_path(const std::string& folder, const SaveNames& names, bool paddle) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail(ErrorKind::Io, "cannot make the folder '{}': {}", folder, error.message());
  fs::path model = names.model;
  if (names.model.empty()) model = paddle ? "model.pdmodel" : "model.onnx";
  const std::string beside = model == "__model__"
                                 ? "__params__"
                                 : fs::path(model).replace_extension(".pdiparams").string();
  if (!names.params.empty() && names.params != beside) {
    fail(ErrorKind::Usage,
         "save_params_filename is '{}'; the parameters of '{}' are written to '{}': leave it empty",
         names.params, model.string(), beside);
  }
  return (fs::path(folder) / model).string();
}

const std::map<std::string, Names>& paddle_types() {
  static const std::map<std::string, Names> types = {
      {"Conv2D", {"Conv"}},
      {"Conv2DTranspose", {"ConvTranspose"}},
      {"Linear", {"MatMul", "Gemm"}},
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
