// SPDX-License-Identifier: Apache-2.0
// Operators that hold graphs: If, Loop and Scan.
#include <algorithm>

#include "exec/engine/bridge.h"
#include "exec/engine/kernels/common.h"
#include "exec/engine/program.h"

namespace quench::exec {
namespace {

/// A graph inside a node, and where in the node's call each value it captures lies.
struct Body {
  std::shared_ptr<Program> program;
  std::vector<std::size_t> captures;

  std::vector<at::Tensor> run(const Call& call, std::vector<at::Tensor> inputs) const {
    inputs.resize(program->graph().inputs.size());
    for (const std::size_t place : captures) inputs.push_back(call.in(place));
    return program->run(inputs);
  }
};

std::optional<Body> compile_body(const OpContext& context, std::string_view attribute) {
  const auto* graph = context.node.get<GraphBox>(attribute);
  if (graph == nullptr) return std::nullopt;
  Body body{.program = context.compile(**graph), .captures = {}};
  for (const std::string& name : body.program->captures()) {
    const auto found = std::ranges::find(context.captured, name);
    const auto place = static_cast<std::size_t>(found - context.captured.begin());
    body.captures.push_back(context.node.inputs.size() + place);
  }
  return body;
}

Kernel make_if(const OpContext& context) {
  const auto yes = compile_body(context, "then_branch");
  const auto no = compile_body(context, "else_branch");
  if (!yes || !no) return refuse("then_branch or else_branch is missing");
  return [yes = *yes, no = *no](Call& call) {
    const bool condition = to_int(call.in(0)) != 0;
    std::vector<at::Tensor> results = (condition ? yes : no).run(call, {});
    for (std::size_t i = 0; i < results.size(); ++i) call.set(i, std::move(results[i]));
  };
}

/// The slices of a scan output as one tensor; with none, an empty one of the type that is declared.
at::Tensor stacked(const std::vector<at::Tensor>& slices, std::int64_t axis,
                   const Value& declared) {
  if (!slices.empty()) {
    return at::stack(slices, wrap_axis(axis, slices[0].dim() + 1));
  }
  Ints shape = {0};
  if (declared.type.shape) {
    for (const Dim& dim : *declared.type.shape) shape.push_back(dim.known() ? dim.value : 0);
  }
  return at::empty(shape, scalar_type(declared.type.dtype).value_or(at::kFloat));
}

const Value& body_output(const Body& body, std::size_t i) {
  const Graph& graph = body.program->graph();
  return graph[graph.outputs[i]];
}

/// One run of a loop: what is carried, and the slices collected so far.
struct LoopState {
  std::vector<at::Tensor> carried;
  std::vector<std::vector<at::Tensor>> slices;
};

/// The count and the condition are scalars, or vectors of one where the body takes such.
Ints loop_shape(const Body& body, std::size_t input) {
  const Graph& graph = body.program->graph();
  const auto& shape = graph[graph.inputs[input]].type.shape;
  return shape && shape->size() == 1 ? Ints{1} : Ints{};
}

bool loop_step(const Call& call, const Body& body, std::int64_t iteration, LoopState& state) {
  std::vector<at::Tensor> inputs = {at::full(loop_shape(body, 0), iteration, at::kLong),
                                    at::ones(loop_shape(body, 1), at::kBool)};
  inputs.insert(inputs.end(), state.carried.begin(), state.carried.end());
  std::vector<at::Tensor> results = body.run(call, std::move(inputs));
  const std::size_t count = state.carried.size();
  for (std::size_t i = 0; i < count; ++i) state.carried[i] = std::move(results[1 + i]);
  for (std::size_t i = 0; i < state.slices.size(); ++i) {
    state.slices[i].push_back(std::move(results[1 + count + i]));
  }
  return to_int(results[0]) != 0;
}

Kernel make_loop(const OpContext& context) {
  const auto body = compile_body(context, "body");
  if (!body) return refuse("the body is missing");
  const std::size_t count = std::max<std::size_t>(context.node.inputs.size(), 2) - 2;
  const std::size_t outputs = body->program->graph().outputs.size();
  if (outputs < 1 + count || body->program->graph().inputs.size() != 2 + count) {
    return refuse("the body does not take and give what the loop carries");
  }
  return [body = *body, count, outputs](Call& call) {
    LoopState state;
    for (std::size_t i = 0; i < count; ++i) state.carried.push_back(call.in(2 + i));
    state.slices.resize(outputs - 1 - count);
    const std::int64_t limit = call.has(0) ? to_int(call.in(0)) : INT64_MAX;
    bool go_on = !call.has(1) || to_int(call.in(1)) != 0;
    for (std::int64_t i = 0; i < limit && go_on; ++i) go_on = loop_step(call, body, i, state);
    for (std::size_t i = 0; i < count; ++i) call.set(i, state.carried[i]);
    for (std::size_t i = 0; i < state.slices.size(); ++i) {
      call.set(count + i, stacked(state.slices[i], 0, body_output(body, 1 + count + i)));
    }
  };
}

/// A scan's axes and directions; attributes that are left out are all zero.
struct Scan {
  std::size_t states = 0;
  Ints input_axes, input_directions, output_axes, output_directions;
};

Scan scan_attributes(const Node& node, std::size_t inputs, std::size_t outputs) {
  Scan scan{.states = node.inputs.size() - inputs,
            .input_axes = node.get_ints("scan_input_axes"),
            .input_directions = node.get_ints("scan_input_directions"),
            .output_axes = node.get_ints("scan_output_axes"),
            .output_directions = node.get_ints("scan_output_directions")};
  scan.input_axes.resize(inputs, 0);
  scan.input_directions.resize(inputs, 0);
  scan.output_axes.resize(outputs, 0);
  scan.output_directions.resize(outputs, 0);
  return scan;
}

void run_scan(Call& call, const Body& body, const Scan& scan) {
  std::vector<at::Tensor> state;
  for (std::size_t i = 0; i < scan.states; ++i) state.push_back(call.in(i));
  const at::Tensor& first = call.in(scan.states);
  const std::int64_t length = first.size(wrap_axis(scan.input_axes[0], first.dim()));
  std::vector<std::vector<at::Tensor>> slices(scan.output_axes.size());
  for (std::int64_t step = 0; step < length; ++step) {
    std::vector<at::Tensor> inputs = state;
    for (std::size_t i = 0; i < scan.input_axes.size(); ++i) {
      const at::Tensor& x = call.in(scan.states + i);
      const std::int64_t place = scan.input_directions[i] != 0 ? length - 1 - step : step;
      inputs.push_back(x.select(wrap_axis(scan.input_axes[i], x.dim()), place));
    }
    std::vector<at::Tensor> results = body.run(call, std::move(inputs));
    for (std::size_t i = 0; i < scan.states; ++i) state[i] = results[i];
    for (std::size_t i = 0; i < slices.size(); ++i) slices[i].push_back(results[scan.states + i]);
  }
  for (std::size_t i = 0; i < scan.states; ++i) call.set(i, state[i]);
  for (std::size_t i = 0; i < slices.size(); ++i) {
    if (scan.output_directions[i] != 0) std::ranges::reverse(slices[i]);
    call.set(scan.states + i,
             stacked(slices[i], scan.output_axes[i], body_output(body, scan.states + i)));
  }
}

Kernel make_scan(const OpContext& context) {
  const auto body = compile_body(context, "body");
  if (!body) return refuse("the body is missing");
  const auto inputs = static_cast<std::size_t>(context.node.get_int("num_scan_inputs", 0));
  const Graph& graph = body->program->graph();
  if (inputs < 1 || inputs > context.node.inputs.size() ||
      graph.inputs.size() != context.node.inputs.size() ||
      graph.outputs.size() < context.node.inputs.size() - inputs) {
    return refuse("the body does not take and give what the scan passes");
  }
  const std::size_t states = context.node.inputs.size() - inputs;
  const Scan scan = scan_attributes(context.node, inputs, graph.outputs.size() - states);
  return [body = *body, scan](Call& call) { run_scan(call, body, scan); };
}

}  // namespace

KernelInfo kernel_If() { return {.since = 1, .make = make_if, .any_float = true}; }
KernelInfo kernel_Loop() { return {.since = 1, .make = make_loop, .any_float = true}; }
KernelInfo kernel_Scan() { return {.since = 9, .make = make_scan, .any_float = true}; }

}  // namespace quench::exec
