// SPDX-License-Identifier: Apache-2.0
// What every target makes of every operator that its table knows, as text.
#include <gtest/gtest.h>

#include <map>

#include "base/format.h"
#include "ops/ops.h"
#include "plan/target.h"

namespace quench {
namespace {

std::string decision(const TargetOp& row) {
  switch (row.kind) {
    case NodePlan::Kind::Integer:
      return row.float_output ? "integer to float" : "integer";
    case NodePlan::Kind::PassThrough:
      return "moves";
    case NodePlan::Kind::Float:
      return format("float ({})", row.reason);
  }
  return "";
}

std::string table_of(const TargetInfo& target) {
  std::map<std::string, std::string> operators;
  for (const ops::OpInfo& op : ops::all_ops()) {
    const TargetOp* row = op.domain.empty() ? plan::find_op(target, op.name) : nullptr;
    if (row != nullptr) operators[decision(*row)] += format(" {}", op.name);
  }
  std::string text = format("{}\n", target.name);
  for (const auto& [what, names] : operators) text += format("  {}:{}\n", what, names);
  return text;
}

constexpr const char* kTables =
    "onnxruntime\n"
    "  float (its integer kernel costs accuracy and gains little): Softmax\n"
    "  float (its integer kernel gains nothing): Where ArgMax\n"
    "  float (no integer kernel; it is free behind a node that has one): Relu Clip\n"
    "  integer: LeakyRelu Sigmoid Add Mul Conv AveragePool GlobalAveragePool Concat\n"
    "  integer to float: MatMul Gemm\n"
    "  moves: MaxPool ReduceMax ReduceMin Reshape Flatten Squeeze Unsqueeze Expand Transpose Split"
    " Tile DepthToSpace Gather GatherElements Slice Resize\n"
    "tensorrt\n"
    "  float (fused with the layer before it): Relu Clip\n"
    "  float (runs in half precision): Sigmoid Mul Softmax LayerNormalization\n"
    "  integer to float: Add MatMul Gemm Conv ConvTranspose AveragePool GlobalAveragePool Concat\n"
    "  moves: MaxPool Reshape Flatten Squeeze Unsqueeze Transpose Split Slice\n"
    "openvino\n"
    "  float (fused with the layer before it): Relu Clip\n"
    "  float (runs in float): Sigmoid\n"
    "  float (the product with an attention output is kept in float): Softmax\n"
    "  integer to float: Add Sub Mul MatMul Gemm Conv ConvTranspose AveragePool GlobalAveragePool"
    " ReduceMean Concat\n"
    "  moves: MaxPool ReduceMax Reshape Flatten Squeeze Unsqueeze Transpose Split Tile"
    " DepthToSpace Slice Resize\n"
    "paddle\n"
    "  float (Paddle 3.3 mistakes the type of what it reads): Mul\n"
    "  float (Paddle's integer kernel for it crashes): ConvTranspose\n"
    "  float (fused with the layer before it): Relu Clip\n"
    "  float (runs in float): Sigmoid Softmax\n"
    "  integer to float: Add MatMul Gemm Conv AveragePool GlobalAveragePool Concat\n"
    "  moves: MaxPool Reshape Flatten Squeeze Unsqueeze Transpose Split Slice\n"
    "tflite\n"
    "  integer: HardSigmoid LeakyRelu Relu Sigmoid Tanh HardSwish Clip Add Sub Mul Softmax MatMul"
    " Gemm Conv ConvTranspose AveragePool GlobalAveragePool ReduceMean Concat\n"
    "  moves: MaxPool Reshape Flatten Squeeze Unsqueeze Transpose Split Pad Gather Slice Resize\n"
    "dsp\n"
    "  float (fused with the layer before it): Relu Clip\n"
    "  integer: HardSigmoid LeakyRelu Sigmoid Tanh HardSwish Add Sub Mul Div PRelu Softmax MatMul"
    " Gemm Conv ConvTranspose AveragePool GlobalAveragePool ReduceMean Concat\n"
    "  moves: MaxPool Reshape Flatten Squeeze Unsqueeze Expand Transpose Split Tile DepthToSpace"
    " SpaceToDepth Gather Slice Resize\n"
    "ascend\n"
    "  float (fused with the layer before it): Relu Clip\n"
    "  integer to float: MatMul Gemm Conv\n"
    "generic\n"
    "  float (fused with the layer before it where the runtime can): Relu Clip\n"
    "  integer to float: Add MatMul Gemm Conv ConvTranspose Concat\n"
    "  moves: MaxPool Reshape Flatten Squeeze Unsqueeze Transpose\n";

TEST(TargetTable, IsWhatTheTargetsDecide) {
  std::string text;
  for (const TargetInfo& target : all_targets()) text += table_of(target);
  EXPECT_EQ(text, kTables);
}

}  // namespace
}  // namespace quench
