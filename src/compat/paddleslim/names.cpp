// SPDX-License-Identifier: Apache-2.0
// PaddleSlim's names for files and operators.
#include "compat/paddleslim/names.h"

#include <set>

#include "base/file.h"
#include "base/format.h"
#include "formats/registry.h"
#include "quench/formats.h"

namespace quench::compat {

using Names = std::vector<std::string>;

constexpr std::string_view kPaddle = "paddle";

bool is_paddle(const std::string& path) { return target_of_model(path) == kPaddle; }

bool becomes_paddle(const std::string& path) { return target_of_output(path) == kPaddle; }

std::string save_path(const std::string& folder, const SaveNames& names, bool paddle) {
  make_folder(folder);
  std::string model = names.model;
  if (model.empty()) model = file_for_target(paddle ? kPaddle : "");
  if (!names.params.empty() && !written_model(model).format.own_params) {
    fail(ErrorKind::Usage,
         "save_params_filename is '{}', but '{}' holds its parameters itself: leave it empty",
         names.params, model);
  }
  return model_path(folder, model, names.params);
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
      {"swish", {"Swish", "Sigmoid"}},
      {"softplus", {"Softplus"}},
      {"prelu", {"PRelu"}},
      {"pow", {"Pow"}},
      {"elementwise_pow", {"Pow"}},
      {"mean", {"ReduceMean"}},
      {"reduce_mean", {"ReduceMean"}},
      {"reduce_sum", {"ReduceSum"}},
      {"reduce_max", {"ReduceMax"}},
      {"reduce_min", {"ReduceMin"}},
      {"arg_max", {"ArgMax"}},
      {"argmax", {"ArgMax"}},
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

Names onnx_names(const Names& types) {
  std::set<std::string> found;
  for (const std::string& type : types) {
    const auto paddle = paddle_types().find(type);
    if (paddle == paddle_types().end()) {
      found.insert(type);
    } else {
      found.insert(paddle->second.begin(), paddle->second.end());
    }
  }
  return {found.begin(), found.end()};
}

}  // namespace quench::compat
