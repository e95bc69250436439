// SPDX-License-Identifier: Apache-2.0
// How a program makes kernels, at once or step by step while it runs.
#include "exec/engine/making.h"

#include <algorithm>
#include <limits>
#include <set>

#include "exec/engine/bridge.h"
#include "exec/engine/pool_allocator.h"
#include "exec/engine/program.h"
#include "ops/ops.h"

namespace quench::exec {
namespace {

bool is_short_float(at::ScalarType type) { return type == at::kHalf || type == at::kBFloat16; }

/// The type of the first input that is a 16-bit float, or float32.
at::ScalarType short_float_in(const Call& call) {
  for (std::size_t i = 0; i < call.num_in(); ++i) {
    const at::Tensor& value = call.in(i);
    if (value.defined() && is_short_float(value.scalar_type())) return value.scalar_type();
  }
  return at::kFloat;
}

/// libtorch has few CPU kernels for 16-bit floats: compute in float32, round the results.
KernelFunction widened(KernelFunction kernel) {
  return [kernel = std::move(kernel)](Call& call) {
    const at::ScalarType narrow = short_float_in(call);
    if (narrow == at::kFloat) return kernel(call);
    std::vector<at::Tensor> slots;
    std::vector<int> in;
    std::vector<int> out;
    for (std::size_t i = 0; i < call.num_in(); ++i) {
      const at::Tensor& value = call.in(i);
      const bool widen = value.defined() && is_short_float(value.scalar_type());
      in.push_back(static_cast<int>(slots.size()));
      slots.push_back(widen ? value.to(at::kFloat) : value);
    }
    for (std::size_t i = 0; i < call.num_out(); ++i) {
      out.push_back(call.wants(i) ? static_cast<int>(slots.size()) : -1);
      slots.emplace_back();
    }
    Call wide(slots, in, out);
    kernel(wide);
    for (std::size_t i = 0; i < call.num_out(); ++i) {
      if (!call.wants(i)) continue;
      const at::Tensor& value = slots[static_cast<std::size_t>(out[i])];
      const bool round = value.defined() && value.scalar_type() == at::kFloat;
      call.set(i, round ? value.to(narrow) : value);
    }
  };
}

/// Whether a 16-bit float may come in, as far as the types are known.
bool takes_short_floats(const Graph& graph, const Node& node) {
  return std::ranges::any_of(node.inputs, [&](ValueId id) {
    if (id == kNoValue) return false;
    const ValueType& type = graph[id].type;
    return type.kind != ValueType::Kind::Tensor || type.dtype == DType::Undefined ||
           type.dtype == DType::Float16 || type.dtype == DType::BFloat16;
  });
}

/// What fusion makes means what the newest opset says.
std::int64_t opset_of(const Node& node, const CompileOptions& options) {
  if (node.domain == kEngineDomain) return std::numeric_limits<std::int32_t>::max();
  const auto found = options.opsets.find(node.domain == "ai.onnx" ? "" : node.domain);
  return found == options.opsets.end() ? 0 : found->second;
}

std::vector<std::string> unique_captures(const Node& node) {
  const std::vector<std::string> all = captured_names(node);
  const std::set<std::string> unique(all.begin(), all.end());
  return {unique.begin(), unique.end()};
}

}  // namespace

KernelFunction as_wide(const KernelInfo& info, const OpContext& context, KernelFunction kernel) {
  const bool plain = info.any_float ||
                     (context.captured.empty() && !takes_short_floats(context.graph, context.node));
  return plain ? std::move(kernel) : widened(std::move(kernel));
}

OpContext Program::context_of(const Node& node, const CompileOptions& options,
                              std::vector<UnsupportedNode>& unsupported) const {
  OpContext context{.graph = graph_, .node = node};
  context.opset = opset_of(node, options);
  context.fast = options.fast;
  context.byte_products = options.byte_products;
  context.among_bytes = options.among_bytes;
  context.captured = unique_captures(node);
  context.compile = [&node, &options, &unsupported](const Graph& inner) {
    if (node.domain != kEngineDomain) {
      return std::make_shared<Program>(inner, options, unsupported);
    }
    // The engine's own nodes run their graphs once, when they are made: no part of any profile.
    const CompileOptions silent{
        .opsets = options.opsets, .fast = options.fast, .byte_products = options.byte_products};
    return std::make_shared<Program>(inner, silent, unsupported);
  };
  return context;
}

bool Program::is_streamed(ValueId id) const {
  constexpr std::size_t kLarge = std::size_t{1} << 20;
  const Tensor* constant = graph_.constant(id);
  // An input's default may be fed over.
  return constant != nullptr && constant->num_bytes() >= kLarge &&
         std::ranges::find(graph_.inputs, id) == graph_.inputs.end();
}

bool Program::may_stream(const Node& node) const {
  return std::ranges::any_of(node.inputs, [&](ValueId id) { return is_streamed(id); });
}

void Program::run_step(const Step& step, Call& call) {
  named(step.label, [&] { step.run(call); });
}

Program::MadeStep Program::make_now(const Step& step) const {
  const Node& node = graph_.nodes[static_cast<std::size_t>(step.streamed)];
  const auto info = find_kernel(node.domain, node.op_type);
  std::vector<UnsupportedNode> unsupported;
  MadeStep made{.run = {}, .in = step.in, .brought = {}};
  named(step.label, [&] {
    std::uint64_t bytes = 0;
    for (const ValueId id : node.inputs) {
      if (is_streamed(id)) bytes += graph_.constant(id)->num_bytes();
    }
    // As they lie in the file, and as the kernel wants them; what only picks rows wants no other.
    expect_room(ops::is(node, ops::kMoves) ? bytes : 2 * bytes);
    const OpContext context = context_of(node, options_, unsupported);
    Kernel kernel = info->make(context);
    if (!kernel.run) fail(ErrorKind::Unsupported, "{}", kernel.refusal);
    made.run = as_wide(*info, context, std::move(kernel.run));
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const bool taken = std::ranges::find(context.taken, i) != context.taken.end();
      if (taken) made.in[i] = -1;
      if (taken || !is_streamed(node.inputs[i])) continue;
      made.in[i] = node.inputs[i];
      made.brought.emplace_back(made.in[i], to_torch(*graph_.constant(made.in[i])));
    }
  });
  return made;
}

void Program::run_made(const Step& step, const MadeStep& made, std::span<const int> dying) {
  const auto let_go = [&] {
    for (const auto& [slot, value] : made.brought) slots_[static_cast<std::size_t>(slot)].reset();
  };
  for (const auto& [slot, value] : made.brought) slots_[static_cast<std::size_t>(slot)] = value;
  try {
    named(step.label, [&] {
      Call call(slots_, made.in, step.out, dying);
      made.run(call);
    });
  } catch (...) {
    let_go();
    throw;
  }
  let_go();
}

}  // namespace quench::exec
