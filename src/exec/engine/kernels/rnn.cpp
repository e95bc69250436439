// SPDX-License-Identifier: Apache-2.0
// Recurrent networks: RNN, GRU and LSTM, one step after the other.
#include "exec/engine/kernels/rnn.h"

#include <algorithm>
#include <array>

namespace quench::exec {
namespace {

/// The tensors of one direction.
struct Weights {
  at::Tensor input;      ///< [gates * hidden, input]
  at::Tensor recurrent;  ///< [gates * hidden, hidden]
  at::Tensor input_bias;
  at::Tensor recurrent_bias;
  at::Tensor peephole;
};

struct State {
  at::Tensor hidden;
  at::Tensor cell;
};

Weights weights_of(const Call& call, const RnnNode& node, std::int64_t direction) {
  Weights weights{.input = call.in(1)[direction], .recurrent = call.in(2)[direction]};
  const std::int64_t rows = weights.input.size(0);
  const at::Tensor bias =
      call.has(3) ? call.in(3)[direction] : at::zeros({2 * rows}, weights.input.options());
  weights.input_bias = bias.narrow(0, 0, rows);
  weights.recurrent_bias = bias.narrow(0, rows, rows);
  if (node.kind == RnnKind::Lstm && call.has(7)) weights.peephole = call.in(7)[direction];
  return weights;
}

at::Tensor clipped(const at::Tensor& x, const RnnNode& node) {
  return node.clip > 0 ? at::clamp(x, -node.clip, node.clip) : x;
}

State step_rnn(const at::Tensor& x, const State& old, const Weights& weights, const RnnNode& node,
               const Activation* functions) {
  const at::Tensor sum = x + at::linear(old.hidden, weights.recurrent, weights.recurrent_bias);
  return {.hidden = functions[0](clipped(sum, node)), .cell = {}};
}

State step_gru(const at::Tensor& x, const State& old, const Weights& weights, const RnnNode& node,
               const Activation* functions) {
  const std::int64_t h = old.hidden.size(1);
  const at::Tensor gates = at::linear(old.hidden, weights.recurrent.narrow(0, 0, 2 * h),
                                      weights.recurrent_bias.narrow(0, 0, 2 * h)) +
                           x.narrow(1, 0, 2 * h);
  const at::Tensor both = functions[0](clipped(gates, node));
  const at::Tensor update = both.narrow(1, 0, h);
  const at::Tensor reset = both.narrow(1, h, h);
  const at::Tensor weight = weights.recurrent.narrow(0, 2 * h, h);
  const at::Tensor bias = weights.recurrent_bias.narrow(0, 2 * h, h);
  const at::Tensor past = node.linear_before_reset ? reset * at::linear(old.hidden, weight, bias)
                                                   : at::linear(reset * old.hidden, weight, bias);
  const at::Tensor fresh = functions[1](clipped(x.narrow(1, 2 * h, h) + past, node));
  return {.hidden = (1 - update) * fresh + update * old.hidden, .cell = {}};
}

State step_lstm(const at::Tensor& x, const State& old, const Weights& weights, const RnnNode& node,
                const Activation* functions) {
  const at::Tensor gates = x + at::linear(old.hidden, weights.recurrent, weights.recurrent_bias);
  const std::vector<at::Tensor> parts = gates.chunk(4, 1);  // input, output, forget, cell
  const std::int64_t h = old.hidden.size(1);
  const auto peek = [&](const at::Tensor& gate, std::int64_t place, const at::Tensor& cell) {
    return weights.peephole.defined() ? gate + weights.peephole.narrow(0, place * h, h) * cell
                                      : gate;
  };
  const at::Tensor in = functions[0](clipped(peek(parts[0], 0, old.cell), node));
  const at::Tensor forget =
      node.input_forget ? 1 - in : functions[0](clipped(peek(parts[2], 2, old.cell), node));
  const at::Tensor cell = forget * old.cell + in * functions[1](clipped(parts[3], node));
  const at::Tensor out = functions[0](clipped(peek(parts[1], 1, cell), node));
  return {.hidden = out * functions[2](cell), .cell = cell};
}

State step(const at::Tensor& x, const State& old, const Weights& weights, const RnnNode& node,
           const Activation* functions) {
  switch (node.kind) {
    case RnnKind::Rnn:
      return step_rnn(x, old, weights, node, functions);
    case RnnKind::Gru:
      return step_gru(x, old, weights, node, functions);
    case RnnKind::Lstm:
      break;
  }
  return step_lstm(x, old, weights, node, functions);
}

/// Layout 1 has the batch before the direction.
State first_state(const Call& call, const RnnNode& node, std::int64_t direction, Ints shape) {
  const auto initial = [&](std::size_t input) {
    return call.has(input) ? call.in(input).select(node.batch_first ? 1 : 0, direction)
                           : at::zeros(shape, call.in(1).options());
  };
  const bool lstm = node.kind == RnnKind::Lstm;
  return {.hidden = initial(5), .cell = lstm ? initial(6) : at::Tensor()};
}

/// Keeps the old state, and gives no output, in rows whose sequence is over.
void stop_finished(const at::Tensor& running, const State& old, State& fresh, at::Tensor& output) {
  if (!running.defined()) return;
  output = at::where(running, output, at::zeros({}, output.options()));
  fresh.hidden = at::where(running, fresh.hidden, old.hidden);
  if (fresh.cell.defined()) fresh.cell = at::where(running, fresh.cell, old.cell);
}

/// Runs one direction over [time, batch, input]; returns the outputs in the order of time.
std::vector<at::Tensor> run_direction(const Call& call, const at::Tensor& x, const RnnNode& node,
                                      std::int64_t direction, State& state) {
  const Weights weights = weights_of(call, node, direction);
  const bool backward = node.direction == "reverse" || direction == 1;
  const std::int64_t time = x.size(0);
  // All steps' inputs in one product.
  const at::Tensor projected = at::linear(x, weights.input, weights.input_bias);
  const at::Tensor lengths = call.has(4) ? call.in(4).to(at::kLong).unsqueeze(1) : at::Tensor();
  const Activation* functions =
      node.activations.data() + static_cast<std::size_t>(direction) * node.functions();
  std::vector<at::Tensor> outputs(static_cast<std::size_t>(time));
  for (std::int64_t i = 0; i < time; ++i) {
    const std::int64_t t = backward ? time - 1 - i : i;
    State fresh = step(projected[t], state, weights, node, functions);
    at::Tensor output = fresh.hidden;
    stop_finished(lengths.defined() ? lengths > t : lengths, state, fresh, output);
    outputs[static_cast<std::size_t>(t)] = std::move(output);
    state = std::move(fresh);
  }
  return outputs;
}

void run_rnn(Call& call, const RnnNode& node) {
  const at::Tensor x = node.batch_first ? call.in(0).transpose(0, 1) : call.in(0);
  const std::int64_t directions = node.direction == "bidirectional" ? 2 : 1;
  const std::int64_t hidden = call.in(2).size(2);
  std::vector<at::Tensor> outputs, last_hidden, last_cell;
  for (std::int64_t d = 0; d < directions; ++d) {
    State state = first_state(call, node, d, {x.size(1), hidden});
    const std::vector<at::Tensor> steps = run_direction(call, x, node, d, state);
    outputs.push_back(steps.empty() ? at::empty({0, x.size(1), hidden}, x.options())
                                    : at::stack(steps));
    last_hidden.push_back(state.hidden);
    last_cell.push_back(state.cell);
  }
  // Y is [time, directions, batch, hidden]; with layout 1 the batch comes first everywhere.
  const at::Tensor all = at::stack(outputs, 1);
  const std::int64_t place = node.batch_first ? 1 : 0;
  call.set(0, node.batch_first ? all.permute({2, 0, 1, 3}) : all);
  call.set(1, at::stack(last_hidden, place));
  if (node.kind == RnnKind::Lstm) call.set(2, at::stack(last_cell, place));
}

template <RnnKind kKind>
Kernel make_rnn(const OpContext& context) {
  std::string refusal;
  const auto node = rnn_attributes(context, kKind, refusal);
  if (!node) return Kernel::Refusal{refusal};
  return [node = *node](Call& call) { run_rnn(call, node); };
}

}  // namespace

KernelInfo kernel_RNN() { return {.since = 7, .make = make_rnn<RnnKind::Rnn>}; }
KernelInfo kernel_GRU() { return {.since = 7, .make = make_rnn<RnnKind::Gru>}; }
KernelInfo kernel_LSTM() { return {.since = 7, .make = make_rnn<RnnKind::Lstm>}; }

}  // namespace quench::exec
