// SPDX-License-Identifier: Apache-2.0
// RNN, GRU and LSTM.
#include "ops/context.h"

namespace quench::ops {
namespace {

std::int64_t num_directions(const Node& node) {
  const std::string direction = node.get_string("direction", "forward");
  if (direction == "forward" || direction == "reverse") return 1;
  if (direction == "bidirectional") return 2;
  fail(ErrorKind::BadModel, "direction is '{}', expected forward, reverse or bidirectional",
       direction);
}

/// hidden_size, or else what the recurrent weights [directions, gates*hidden, hidden] say.
Dim hidden_size(const InferContext& context) {
  const std::int64_t hidden = context.node().get_int("hidden_size", 0);
  if (hidden < 0) fail(ErrorKind::BadModel, "hidden_size is {}", hidden);
  const Dims* weights = context.shape(2);
  Dim last = weights == nullptr ? Dim{} : weights->back();
  if (hidden == 0) return last;
  if (last.known() && last.value != hidden) {
    fail(ErrorKind::BadModel, "hidden_size is {}, but the recurrent weights are {}", hidden,
         shape_text(*weights));
  }
  return Dim{hidden, {}};
}

}  // namespace

void infer_rnn(InferContext& context) {
  for (std::size_t i = 0; i < 3; ++i) expect_rank(context, i, 3);
  const bool batch_first = context.node().get_int("layout", 0) != 0;
  const Dim directions{num_directions(context.node()), {}};
  const Dim hidden = hidden_size(context);
  const Dims* input = context.shape(0);
  const Dim steps = input == nullptr ? Dim{} : (*input)[batch_first ? 1 : 0];
  const Dim batch = input == nullptr ? Dim{} : (*input)[batch_first ? 0 : 1];
  const Dims state =
      batch_first ? Dims{batch, directions, hidden} : Dims{directions, batch, hidden};
  context.set(0, context.dtype(0),
              batch_first ? Dims{batch, steps, directions, hidden}
                          : Dims{steps, directions, batch, hidden});
  context.set(1, context.dtype(0), state);
  context.set(2, context.dtype(0), state);
}

}  // namespace quench::ops
