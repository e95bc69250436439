// SPDX-License-Identifier: Apache-2.0
// Paddle's recurrent networks.
#include <algorithm>
#include <array>

#include "base/format.h"
#include "formats/paddle/op.h"
#include "formats/paddle/rnn_gates.h"

namespace quench::paddle {
namespace {

const RnnKind& kind_of(const std::string& mode) {
  const RnnKind* kind = rnn_kind(mode);
  if (kind == nullptr) fail(ErrorKind::Unsupported, "its mode is '{}'", mode);
  return *kind;
}

/// The parameters of one layer, put together as ONNX has them.
class Layer {
 public:
  Layer(Op& op, const RnnKind& kind, std::int64_t hidden) : op_(op), kind_(kind), hidden_(hidden) {}

  /// The weights at these positions of the list, one for each direction: [directions, gates, in].
  ValueId join(std::span<const std::size_t> positions) {
    std::vector<float> values;
    Shape shape;
    for (const std::size_t position : positions) {
      const Tensor tensor = gates(position);
      const std::vector<float> part = to_float(tensor);
      values.insert(values.end(), part.begin(), part.end());
      shape = tensor.shape();
    }
    shape.insert(shape.begin(), std::ssize(positions));
    return op_.constant(Tensor::of<float>(shape, std::span<const float>(values)));
  }

  /// Biases of inputs and of states, one behind the other.
  ValueId join_biases(std::span<const std::size_t> positions) {
    std::vector<float> values;
    for (const std::size_t position : positions) {
      for (const std::size_t each : {position, position + 1}) {
        const std::vector<float> part = to_float(gates(each));
        values.insert(values.end(), part.begin(), part.end());
      }
    }
    const std::int64_t directions = std::ssize(positions);
    return op_.constant(Tensor::of<float>({directions, std::ssize(values) / directions},
                                          std::span<const float>(values)));
  }

 private:
  Tensor gates(std::size_t position) {
    const Tensor* tensor = op_.constant_of(op_.in("WeightList", position));
    const auto rows = static_cast<std::int64_t>(kind_.order.size()) * hidden_;
    if (tensor == nullptr || tensor->rank() < 1 || tensor->shape()[0] != rows) {
      fail(ErrorKind::Unsupported, "its weight {} is no parameter of {} rows", position, rows);
    }
    return gates_from_paddle(*tensor, kind_);
  }

  Op& op_;
  const RnnKind& kind_;
  std::int64_t hidden_;
};

void read_rnn(Op& op) {
  const RnnKind& kind = kind_of(op.text("mode"));
  const std::int64_t hidden = op.integer("hidden_size");
  const std::int64_t layers = op.integer("num_layers");
  const std::size_t directions = op.flag("is_bidirec") ? 2 : 1;
  const std::size_t half = op.names("WeightList").size() / 2;
  if (layers < 1 || half != 2 * directions * static_cast<std::size_t>(layers) || hidden < 1) {
    fail(ErrorKind::BadModel, "its number of weights does not fit its {} layers", layers);
  }
  Attributes attributes{{"hidden_size", hidden},
                        {"direction", std::string(directions == 2 ? "bidirectional" : "forward")}};
  if (std::string_view(kind.op_type) == "GRU") {
    attributes.emplace_back("linear_before_reset", std::int64_t{1});
  }
  if (*kind.activation != '\0') {
    attributes.emplace_back("activations", std::vector<std::string>(directions, kind.activation));
  }
  const ValueId lengths =
      op.has("SequenceLength") ? op.cast(op.in("SequenceLength"), DType::Int32) : kNoValue;
  const std::size_t states = op.names("PreState").size();
  ValueId x = op.in("Input");
  std::vector<std::vector<ValueId>> last(states);
  Layer weights(op, kind, hidden);
  for (std::size_t layer = 0; layer < static_cast<std::size_t>(layers); ++layer) {
    std::vector<std::size_t> inputs, recurrent, biases;
    for (std::size_t direction = 0; direction < directions; ++direction) {
      const std::size_t at = 2 * (layer * directions + direction);
      inputs.push_back(at);
      recurrent.push_back(at + 1);
      biases.push_back(half + at);
    }
    std::vector<ValueId> given{x, weights.join(inputs), weights.join(recurrent),
                               weights.join_biases(biases), lengths};
    const auto first = static_cast<std::int64_t>(layer * directions);
    for (std::size_t i = 0; i < states; ++i) {
      given.push_back(
          op.slice(op.in("PreState", i), 0, first, first + static_cast<std::int64_t>(directions)));
    }
    const auto made = op.nodes(kind.op_type, given, 1 + states, attributes);
    x = op.reshape(op.transpose(made[0], {0, 2, 1, 3}), {0, 0, -1});
    for (std::size_t i = 0; i < states; ++i) last[i].push_back(made[1 + i]);
  }
  op.set("Out", x);
  for (std::size_t i = 0; i < states; ++i) {
    op.set("State", op.node("Concat", last[i], {{"axis", std::int64_t{0}}}), i);
  }
}

/// One sequence of inputs that are multiplied already: [T, 3 H], gates u, r and c. The weight holds
/// a matrix [H, 2 H] and behind it one of [H, H]. Without `origin_mode` a gate says how much is
/// new, where ONNX's says how much stays: 1 - sigmoid(x) = sigmoid(-x).
void read_gru(Op& op) {
  const Tensor* weight = op.constant_of(op.in("Weight"));
  if (weight == nullptr || weight->rank() != 2 || weight->shape()[1] != 3 * weight->shape()[0]) {
    fail(ErrorKind::Unsupported, "its weight is no parameter of three gates");
  }
  if (op.text("activation") != "tanh" || op.text("gate_activation") != "sigmoid" || op.has("H0")) {
    fail(ErrorKind::Unsupported, "it has other activations than usual, or a first state");
  }
  const auto h = static_cast<std::size_t>(weight->shape()[0]);
  const std::vector<float> w = to_float(*weight);
  const float sign = op.flag("origin_mode") ? 1.0F : -1.0F;
  std::vector<float> chosen(9 * h * h, 0.0F), recurrent(3 * h * h), bias(6 * h, 0.0F);
  for (std::size_t i = 0; i < 3 * h; ++i) chosen[i * 3 * h + i] = i < h ? sign : 1.0F;
  for (std::size_t from = 0; from < h; ++from) {
    for (std::size_t to = 0; to < h; ++to) {
      recurrent[to * h + from] = sign * w[from * 2 * h + to];
      recurrent[(h + to) * h + from] = w[from * 2 * h + h + to];
      recurrent[(2 * h + to) * h + from] = w[2 * h * h + from * h + to];
    }
  }
  if (op.has("Bias")) {
    const Tensor* given = op.constant_of(op.in("Bias"));
    if (given == nullptr || given->size() != static_cast<std::int64_t>(3 * h)) {
      fail(ErrorKind::Unsupported, "its bias is no parameter of three gates");
    }
    const std::vector<float> values = to_float(*given);
    for (std::size_t i = 0; i < 3 * h; ++i) bias[i] = i < h ? sign * values[i] : values[i];
  }
  const auto size = static_cast<std::int64_t>(h);
  const auto made = op.nodes(
      "GRU",
      {op.unsqueeze(op.in("Input"), {1}),
       op.constant(Tensor::of<float>({1, 3 * size, 3 * size}, std::span<const float>(chosen))),
       op.constant(Tensor::of<float>({1, 3 * size, size}, std::span<const float>(recurrent))),
       op.constant(Tensor::of<float>({1, 6 * size}, std::span<const float>(bias)))},
      1,
      {{"hidden_size", size},
       {"direction", std::string(op.flag("is_reverse") ? "reverse" : "forward")}});
  op.set("Hidden", op.reshape(made[0], {-1, size}));
}

/// The weights and biases of every layer and direction, from what `Layer` joined.
void restore_rnn(Restored& op) {
  const std::vector<std::string>& names = op.inputs["WeightList"];
  const std::size_t half = names.size() / 2;
  std::size_t at = 0;
  for (const Node* node : op.nodes) {
    const auto kind = std::ranges::find(rnn_kinds(), node->op_type, &RnnKind::op_type);
    if (kind == rnn_kinds().end()) continue;
    for (const RnnParameters& each : rnn_parameters(op.graph, *node, *kind)) {
      if (at + 1 >= half) return;  // not the operator that it was
      op.parameters.emplace(names[at], each.weight);
      op.parameters.emplace(names[at + 1], each.recurrent);
      op.parameters.emplace(names[half + at], each.bias);
      op.parameters.emplace(names[half + at + 1], each.recurrent_bias);
      at += 2;
    }
  }
}

void restore_gru(Restored& op) {
  const auto node = std::ranges::find(
      op.nodes, "GRU", [](const Node* each) { return std::string_view(each->op_type); });
  if (node == op.nodes.end()) return;
  const Tensor* chosen = op.graph.constant((*node)->input(1));
  const Tensor* recurrent = op.graph.constant((*node)->input(2));
  const Tensor* biases = op.graph.constant((*node)->input(3));
  if (chosen == nullptr || recurrent == nullptr || biases == nullptr) return;
  const float sign = to_float(*chosen)[0];
  const auto h = static_cast<std::size_t>(recurrent->shape()[2]);
  const std::vector<float> r = to_float(*recurrent);
  std::vector<float> w(3 * h * h), bias = to_float(*biases);
  for (std::size_t from = 0; from < h; ++from) {
    for (std::size_t to = 0; to < h; ++to) {
      w[from * 2 * h + to] = sign * r[to * h + from];
      w[from * 2 * h + h + to] = r[(h + to) * h + from];
      w[2 * h * h + from * h + to] = r[(2 * h + to) * h + from];
    }
  }
  for (std::size_t i = 0; i < h; ++i) bias[i] *= sign;
  const auto size = static_cast<std::int64_t>(h);
  for (const std::string& name : op.inputs["Weight"]) {
    op.parameters.emplace(name, Tensor::of<float>({size, 3 * size}, std::span<const float>(w)));
  }
  for (const std::string& name : op.inputs["Bias"]) {
    op.parameters.emplace(
        name, Tensor::of<float>({1, 3 * size}, std::span<const float>(bias).first(3 * h)));
  }
}

constexpr auto kRows = std::to_array<OpRow>({
    {"rnn", "", "Input PreState WeightList SequenceLength DropoutStateIn",
     "Out DropoutState State Reserve",
     "mode=RNN_TANH hidden_size=100 num_layers=1 is_bidirec=false", read_rnn, 13, restore_rnn},
    {"gru", "-", "Input H0 Weight Bias", "Hidden",
     "activation=tanh gate_activation=sigmoid is_reverse=false origin_mode=false", read_gru, 13,
     restore_gru},
});

}  // namespace

std::span<const OpRow> rnn_rows() { return kRows; }

}  // namespace quench::paddle
