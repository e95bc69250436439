// SPDX-License-Identifier: Apache-2.0
// Recurrent layers: one node is one layer of Paddle's rnn.
#include <algorithm>

#include "formats/paddle/rnn_gates.h"
#include "formats/paddle/write/writer.h"

namespace quench::paddle::write {
namespace {

/// What ONNX can say and Paddle's operator cannot.
void expect_usual(const NodeWriter& node, const RnnKind& kind) {
  const Node& n = node.node;
  if (n.get_string("direction", "forward") == "reverse") node.refuse("it only runs backwards");
  if (n.get_int("layout", 0) != 0) node.refuse("its batch comes first (layout)");
  if (n.find("clip") != nullptr || n.get_int("input_forget", 0) != 0 || node.has(7)) {
    node.refuse("it clips, couples gates or has peepholes");
  }
  if (n.op_type == "GRU" && n.get_int("linear_before_reset", 0) == 0) {
    node.refuse("it resets before the product (linear_before_reset is 0)");
  }
  const auto* given = n.get<std::vector<std::string>>("activations");
  if (given == nullptr) return;
  std::vector<std::string> usual{"Sigmoid", "Tanh", "Tanh"};
  if (n.op_type == "GRU") usual.pop_back();
  if (n.op_type == "RNN") usual = {kind.activation};
  for (std::size_t i = 0; i < given->size(); ++i) {
    if ((*given)[i] != usual[i % usual.size()])
      node.refuse("its activations are not the usual ones");
  }
}

const RnnKind& kind_of(const NodeWriter& node) {
  const auto* activations = node.node.get<std::vector<std::string>>("activations");
  const bool relu = node.node.op_type == "RNN" && activations != nullptr && !activations->empty() &&
                    activations->front() == "Relu";
  const auto kind = std::ranges::find(rnn_kinds(), node.node.op_type, &RnnKind::op_type);
  return relu ? *rnn_kind("RNN_RELU") : *kind;
}

std::string zeros(const NodeWriter& node, std::int64_t directions, std::int64_t hidden) {
  const std::string state = node.between("start");
  node.op("fill_constant_batch_size_like")
      .in("Input", node.in())
      .out("Out", state)
      .set("shape", narrow({directions, 1, hidden}))
      .set("input_dim_idx", 1)
      .set("output_dim_idx", 1)
      .set("value", 0.0F)
      .set("str_value", "0")
      .set("dtype", 5)
      .set("force_cpu", false);
  return state;
}

std::vector<RnnParameters> parameters(const NodeWriter& node, const RnnKind& kind) {
  auto found = rnn_parameters(node.graph(), node.node, kind);
  if (found.empty()) node.refuse("its weights are computed while it runs");
  return found;
}

Names weight_list(const NodeWriter& node, const std::vector<RnnParameters>& layers) {
  const std::string stem = node.graph()[node.node.outputs[0]].name;
  const auto add = [&](const char* what, const Tensor& tensor) {
    return node.writer.parameter(stem + what, tensor);
  };
  Names weights, biases;
  for (const RnnParameters& each : layers) {
    weights.push_back(add(".weight_ih", each.weight));
    weights.push_back(add(".weight_hh", each.recurrent));
    biases.push_back(add(".bias_ih", each.bias));
    biases.push_back(add(".bias_hh", each.recurrent_bias));
  }
  weights.insert(weights.end(), biases.begin(), biases.end());
  return weights;
}

/// [T, N, directions * hidden] becomes [T, directions, N, hidden].
void set_sequence(const NodeWriter& node, const std::string& from, std::int64_t directions,
                  std::int64_t hidden) {
  const std::string apart = node.between("directions");
  node.op("reshape2")
      .in("X", from)
      .out("Out", apart)
      .out("XShape", node.between("xshape"))
      .set("shape", narrow({0, 0, directions, hidden}));
  node.op("transpose2")
      .in("X", apart)
      .out("Out", node.out())
      .out("XShape", node.between("xshape2"))
      .set("axis", Ints{0, 2, 1, 3});
}

void rnn(const NodeWriter& node) {
  const RnnKind& kind = kind_of(node);
  expect_usual(node, kind);
  const std::vector<RnnParameters> layers = parameters(node, kind);
  const std::int64_t directions = std::ssize(layers);
  const std::int64_t hidden = layers[0].recurrent.shape()[1];
  const bool cell = node.node.op_type == "LSTM";
  const bool sequence = node.node.outputs[0] != kNoValue;
  if (!sequence) node.refuse("nobody reads its sequence");
  Names before, after;
  for (std::size_t i = 0; i < (cell ? 2U : 1U); ++i) {
    before.push_back(node.has(5 + i) ? node.in(5 + i) : zeros(node, directions, hidden));
    const bool read = node.node.outputs.size() > 1 + i && node.node.outputs[1 + i] != kNoValue;
    after.push_back(read ? node.out(1 + i) : node.between("state"));
  }
  const std::string joined = node.between("joined");
  Op op = node.op("rnn");
  op.in("Input", node.in()).in("PreState", before).in("WeightList", weight_list(node, layers));
  if (node.has(4)) op.in("SequenceLength", node.in(4));
  op.out("Out", joined)
      .out("DropoutState", node.between("dropout"))
      .out("Reserve", node.between("reserve"))
      .out("State", after)
      .set("mode", kind.mode)
      .set("hidden_size", static_cast<std::int32_t>(hidden))
      .set("input_size", static_cast<std::int32_t>(layers[0].weight.shape()[1]))
      .set("num_layers", 1)
      .set("is_bidirec", directions == 2)
      .set("dropout_prob", 0.0F)
      .set("is_test", true)
      .set("seed", 0);
  set_sequence(node, joined, directions, hidden);
}

}  // namespace

std::vector<WriteRow> rnn_rows() { return {{"LSTM", rnn}, {"GRU", rnn}, {"RNN", rnn}}; }

}  // namespace quench::paddle::write
