// SPDX-License-Identifier: Apache-2.0
// How the gates of recurrent layers lie in Paddle and in ONNX.
#include "formats/paddle/rnn_gates.h"

#include <algorithm>

namespace quench::paddle {
namespace {

/// Blocks of `values`, one a gate; block i comes from or goes to `order[i]`.
std::vector<float> reordered(std::span<const float> values, std::span<const std::size_t> order,
                             bool from_paddle) {
  const std::size_t width = values.size() / order.size();
  std::vector<float> result(values.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t from = from_paddle ? order[i] : i;
    const std::size_t to = from_paddle ? i : order[i];
    std::ranges::copy(values.subspan(from * width, width),
                      result.begin() + static_cast<std::ptrdiff_t>(to * width));
  }
  return result;
}

}  // namespace

std::span<const RnnKind> rnn_kinds() {
  static const std::vector<RnnKind> kinds = {
      {"LSTM", "LSTM", {0, 3, 1, 2}, ""},  // i f c o -> i o f c
      {"GRU", "GRU", {1, 0, 2}, ""},       // r z h -> z r h
      {"RNN_TANH", "RNN", {0}, "Tanh"},
      {"RNN_RELU", "RNN", {0}, "Relu"},
  };
  return kinds;
}

const RnnKind* rnn_kind(std::string_view mode) {
  for (const RnnKind& kind : rnn_kinds()) {
    if (mode == kind.mode) return &kind;
  }
  return nullptr;
}

Tensor gates_from_paddle(const Tensor& tensor, const RnnKind& kind) {
  const std::vector<float> ordered = reordered(to_float(tensor), kind.order, true);
  return Tensor::of<float>(tensor.shape(), std::span<const float>(ordered));
}

std::vector<RnnParameters> rnn_parameters(const Graph& graph, const Node& node,
                                          const RnnKind& kind) {
  const Tensor* weight = graph.constant(node.input(1));
  const Tensor* recurrent = graph.constant(node.input(2));
  const Tensor* given = graph.constant(node.input(3));
  if (weight == nullptr || recurrent == nullptr || weight->rank() != 3 || recurrent->rank() != 3 ||
      (given == nullptr && node.input(3) != kNoValue)) {
    return {};
  }
  const auto directions = static_cast<std::size_t>(weight->shape()[0]);
  const std::int64_t rows = weight->shape()[1];
  const Tensor none = Tensor::zeros(DType::Float32, {weight->shape()[0], 2 * rows});
  const Tensor& biases = given == nullptr ? none : *given;
  std::vector<RnnParameters> result;
  for (std::size_t i = 0; i < directions; ++i) {
    const auto part = [&](const Tensor& all, std::size_t at, std::size_t parts, Shape shape) {
      const std::vector<float> values = to_float(all);
      const std::size_t size = values.size() / parts;
      const auto ordered = reordered(std::span(values).subspan(at * size, size), kind.order, false);
      return Tensor::of<float>(std::move(shape), std::span<const float>(ordered));
    };
    result.push_back({part(*weight, i, directions, {rows, weight->shape()[2]}),
                      part(*recurrent, i, directions, {rows, recurrent->shape()[2]}),
                      part(biases, 2 * i, 2 * directions, {rows}),
                      part(biases, 2 * i + 1, 2 * directions, {rows})});
  }
  return result;
}

}  // namespace quench::paddle
