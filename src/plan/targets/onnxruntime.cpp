// SPDX-License-Identifier: Apache-2.0
// ONNX Runtime's CPU provider: unsigned activations, signed weights, Q/DQ fused into QLinear
// operators.
#include "plan/facts.h"
#include "plan/target.h"

namespace quench::plan {
namespace {

/// Whether a convolution comes somewhere behind the node.
bool leads_to_conv(const Graph& graph, const Node& node) {
  const Uses uses(graph);
  std::vector<ValueId> pending = node.outputs;
  std::vector<bool> seen(graph.values().size());
  while (!pending.empty()) {
    const ValueId value = pending.back();
    pending.pop_back();
    if (value == kNoValue || seen[static_cast<std::size_t>(value)]) continue;
    seen[static_cast<std::size_t>(value)] = true;
    for (const NodeId id : uses.consumers[static_cast<std::size_t>(value)]) {
      const Node& reader = graph.nodes[static_cast<std::size_t>(id)];
      if (reader.op_type == "Conv") return true;
      pending.insert(pending.end(), reader.outputs.begin(), reader.outputs.end());
    }
  }
  return false;
}

std::string refuse(const Graph& graph, const Node& node) {
  if (node.op_type == "MaxPool" && !leads_to_conv(graph, node)) {
    return "behind the last convolution its integer kernel is slower than the float one";
  }
  if (node.op_type == "AveragePool") {
    for (const std::int64_t step : node.get_ints("dilations")) {
      if (step != 1) return "its integer kernel has no dilations";
    }
  }
  if (node.op_type == "Gemm" && node.input(2) != kNoValue &&
      (node.get_float("alpha", 1) != 1 || node.get_float("beta", 1) != 1)) {
    return "its integer kernel adds a bias only with alpha and beta 1";
  }
  if (node.op_type == "Concat" && graph[node.outputs[0]].type.shape &&
      graph[node.outputs[0]].type.shape->empty()) {
    return "it joins scalars";
  }
  return "";
}

}  // namespace

TargetInfo onnxruntime() {
  TargetInfo target{.name = "onnxruntime",
                    .summary = "ONNX Runtime on CPU: uint8 activations, int8 weights per channel"};
  target.ops = {
      integer("Conv"),
      integer_to_float("Gemm"),
      integer_to_float("MatMul"),
      integer("Add"),
      integer("Mul"),
      integer("Concat"),
      integer("AveragePool"),
      integer("GlobalAveragePool"),
      integer("Sigmoid"),
      integer("LeakyRelu"),
      moves("Reshape"),
      moves("Transpose"),
      moves("Squeeze"),
      moves("Unsqueeze"),
      moves("Flatten"),
      moves("Slice"),
      moves("Gather"),
      moves("GatherElements"),
      moves("Expand"),
      moves("Tile"),
      moves("Split"),
      moves("MaxPool"),
      moves("ReduceMax"),
      moves("ReduceMin"),
      moves("DepthToSpace"),
      moves("Resize"),
      in_float("Softmax", "its integer kernel costs accuracy and gains little"),
      in_float("Where", "its integer kernel gains nothing"),
      in_float("ArgMax", "its integer kernel gains nothing"),
      in_float("Relu", "no integer kernel; it is free behind a node that has one"),
      in_float("Clip", "no integer kernel; it is free behind a node that has one"),
  };
  target.integer_clip = true;
  target.otherwise = "ONNX Runtime has no integer kernel for it";
  target.refuse = refuse;
  return target;
}

}  // namespace quench::plan
