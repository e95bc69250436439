// SPDX-License-Identifier: Apache-2.0
// How the gates of recurrent layers lie in Paddle and in ONNX.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "quench/graph.h"

namespace quench::paddle {

/// `order[i]` is Paddle's position of ONNX's gate i.
struct RnnKind {
  const char* mode;
  const char* op_type;
  std::vector<std::size_t> order;
  const char* activation;  ///< of ONNX; "": its own
};

std::span<const RnnKind> rnn_kinds();
/// By Paddle's mode; null: not known.
const RnnKind* rnn_kind(std::string_view mode);

/// A tensor whose first axis is gates, in ONNX's order.
Tensor gates_from_paddle(const Tensor& tensor, const RnnKind& kind);

/// What one direction of a layer has in Paddle.
struct RnnParameters {
  Tensor weight, recurrent, bias, recurrent_bias;
};
/// One for each direction of a recurrent node; empty where its weights are no constants. Without a
/// bias zeros stand for it.
std::vector<RnnParameters> rnn_parameters(const Graph& graph, const Node& node,
                                          const RnnKind& kind);

}  // namespace quench::paddle
