// SPDX-License-Identifier: Apache-2.0
// Compiles a graph into steps, and runs them.
#include "exec/engine/program.h"

#include <algorithm>
#include <array>

#include "exec/engine/bridge.h"
#include "exec/engine/captures.h"
#include "exec/engine/kernels/collective.h"
#include "exec/engine/making.h"
#include "exec/engine/parallel.h"
#include "exec/engine/types.h"
#include "exec/fused.h"
#include "ops/ops.h"
#include "passes/parallel_layers.h"

namespace quench::exec {
namespace {

/// libtorch shares the work of these, and of what is pointwise, only where there is much of it:
/// small ones take the same time in the pool as outside, and need not end it.
constexpr auto kLight = std::to_array<std::string_view>(
    {"Concat", "Expand", "Gather", "LpNormalization", "Range", "ReduceMax", "ReduceMean",
     "ReduceSum", "Shape", "Slice", "Softmax", "Split"});
/// Elements of the largest tensor of a small step: libtorch's least share of work.
constexpr std::int64_t kSmall = 32768;

bool is_light(std::string_view op_type) {
  const ops::OpInfo* op = ops::find_op("", op_type);
  const bool pointwise = op != nullptr && (op->facts.is & ops::kPointwise) != 0;
  return pointwise || std::ranges::find(kLight, op_type) != kLight.end();
}

Kernel make_kernel(const KernelInfo& info, const OpContext& context,
                   const CompileOptions& options) {
  const bool joins = options.shards && passes::is_collective(context.node);
  return joins ? make_collective(context, options.shards) : info.make(context);
}

/// How often each value is read: by nodes, by graphs inside them, and as an output.
std::vector<std::size_t> count_readers(const Graph& graph) {
  const Uses uses(graph);
  std::vector<std::size_t> counts;
  for (std::size_t i = 0; i < graph.values().size(); ++i) {
    counts.push_back(uses.consumers[i].size() + (uses.is_output[i] ? 1 : 0));
  }
  return counts;
}

}  // namespace

Program::Program(Graph graph, const CompileOptions& options,
                 std::vector<UnsupportedNode>& unsupported)
    : options_(options.streams ? options : CompileOptions{}),
      graph_(with_captures(std::move(graph))),
      on_step_(options.on_step),
      on_sample_(options.on_sample),
      on_summary_(options.on_summary),
      summarized_(options.summarized),
      tap_of_(graph_.values().size(), -1),
      shards_(options.shards),
      producer_(graph_.values().size(), -1),
      place_(options.place),
      read_here_(graph_.values().size(), false) {
  if (on_summary_) counter_ = std::make_unique<TapCounter>(place_.device);
  slots_.resize(graph_.values().size());
  for (std::size_t i = 0; i < graph_.values().size(); ++i) {
    if (graph_.values()[i].captured) {
      captures_.push_back(graph_.values()[i].name);
      capture_slots_.push_back(static_cast<int>(i));
    }
  }
  for (std::size_t i = 0; i < options.taps.size(); ++i) {
    split_.push_back(options.split.contains(options.taps[i]));
    const ValueId id = graph_.find(options.taps[i]);
    if (id != kNoValue) tap_of_[static_cast<std::size_t>(id)] = static_cast<int>(i);
  }
  readers_ = count_readers(graph_);
  // A tap may have been folded to a constant: kernels must not take that away.
  for (std::size_t i = 0; i < tap_of_.size(); ++i) readers_[i] += tap_of_[i] >= 0 ? 1 : 0;
  for (const Node& node : graph_.nodes) add_step(node, options, unsupported);
  std::vector<bool> read(slots_.size(), false);
  std::vector<bool> made_later(slots_.size(), false);
  for (const Step& step : steps_) {
    if (step.streamed >= 0) {
      for (const ValueId id : graph_.nodes[static_cast<std::size_t>(step.streamed)].inputs) {
        if (id != kNoValue) made_later[static_cast<std::size_t>(id)] = true;
      }
    }
    for (const int slot : step.in) {
      if (slot >= 0) read[static_cast<std::size_t>(slot)] = true;
    }
  }
  for (const ValueId id : graph_.outputs) read[static_cast<std::size_t>(id)] = true;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (tap_of_[i] >= 0) read[i] = true;
    Value& value = graph_[static_cast<ValueId>(i)];
    if (value.constant && read[i] && scalar_type(value.constant->dtype())) {
      slots_[i] = to_torch(*value.constant);
      if (tap_of_[i] >= 0) constant_taps_.push_back(static_cast<int>(i));
    }
    if (!made_later[i]) value.constant.reset();  // what a kernel took is now the kernel's alone
  }
}

void Program::add_step(const Node& node, const CompileOptions& options,
                       std::vector<UnsupportedNode>& unsupported) {
  const auto no = [&](std::string reason) {
    unsupported.push_back(
        {.node = label(graph_, node), .op_type = node.op_type, .reason = std::move(reason)});
  };
  const auto info = find_kernel(node.domain, node.op_type);
  if (!info) return no("the engine has no kernel for this operator");
  if (std::string why = type_refusal(graph_, node); !why.empty()) return no(std::move(why));
  OpContext context = context_of(node, options, unsupported);
  if (node.domain.empty() && context.opset < info->since) {
    return no(format("opset {} gives it another meaning; {} and later are supported", context.opset,
                     info->since));
  }
  Step step;
  if (options.streams && context.captured.empty() && may_stream(node)) {
    step.streamed = static_cast<int>(&node - graph_.nodes.data());
  }
  Kernel kernel = Kernel::Refusal{};
  if (step.streamed < 0)
    named(label(graph_, node), [&] { kernel = make_kernel(*info, context, options); });
  if (!kernel.run && step.streamed < 0) return no(kernel.refusal);
  step.shares = kernel.shares || ops::is(node, ops::kView);
  step.light = is_light(node.op_type) && context.captured.empty() && step.streamed < 0;
  step.run = as_wide(*info, context, std::move(kernel.run));
  step.label = label(graph_, node);
  step.op_type = node.op_type;
  step.there = options.place.away() && runs_anywhere(node) && context.captured.empty();
  // Scales of half precision would be others.
  const bool quantizes = node.op_type == "QuantizeLinear" || node.op_type == "DequantizeLinear";
  if (quantizes && options.place.number != at::kFloat) step.there = false;
  step.integers = step.there && quantizes;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId id = node.inputs[i];
    const bool taken = std::ranges::find(context.taken, i) != context.taken.end();
    const bool brought = step.streamed >= 0 && is_streamed(id);
    step.in.push_back(taken || brought ? -1 : id);
    if (taken) give_up(id);
  }
  for (const std::string& name : context.captured) step.in.push_back(graph_.find(name));
  step.out.assign(node.outputs.begin(), node.outputs.end());
  for (const int slot : step.in) {
    if (slot >= 0 && !step.there) read_here_[static_cast<std::size_t>(slot)] = true;
  }
  for (const int slot : step.out) {
    if (slot >= 0) producer_[static_cast<std::size_t>(slot)] = static_cast<int>(steps_.size());
  }
  steps_.push_back(std::move(step));
}

/// A constant that a kernel took and nothing else reads goes at once: the next kernel's copy may
/// have its place in memory.
void Program::give_up(ValueId id) {
  if (--readers_[static_cast<std::size_t>(id)] == 0) graph_[id].constant.reset();
}

std::vector<int> Program::steps_between(const std::vector<int>& fed,
                                        const std::vector<int>& wanted) const {
  std::vector<bool> known(slots_.size(), false);
  for (const int slot : fed) known[static_cast<std::size_t>(slot)] = true;
  std::vector<bool> needed(steps_.size(), false);
  std::vector<int> open = wanted;
  while (!open.empty()) {
    const auto slot = static_cast<std::size_t>(open.back());
    open.pop_back();
    if (known[slot]) continue;
    known[slot] = true;
    const int step = producer_[slot];
    if (step < 0) {
      if (slots_[slot].defined()) continue;  // a constant
      fail(ErrorKind::BadData,
           "the model input '{}' is missing; it must be given to run this model",
           graph_.values()[slot].name);
    }
    if (needed[static_cast<std::size_t>(step)]) continue;
    needed[static_cast<std::size_t>(step)] = true;
    for (const int in : steps_[static_cast<std::size_t>(step)].in) {
      if (in >= 0) open.push_back(in);
    }
  }
  std::vector<int> result;
  for (std::size_t i = 0; i < needed.size(); ++i) {
    if (needed[i]) result.push_back(static_cast<int>(i));
  }
  return result;
}

Program::Schedule Program::make_schedule(const std::vector<int>& fed,
                                         const std::vector<int>& wanted) const {
  Schedule result{.fed = fed, .wanted = wanted, .steps = steps_between(fed, wanted)};
  result.release.resize(result.steps.size());
  std::vector<bool> kept(slots_.size(), false);
  for (const int slot : wanted) kept[static_cast<std::size_t>(slot)] = true;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].defined()) kept[i] = true;
  }
  // Backwards: the first time a slot is met is its last use.
  for (std::size_t i = result.steps.size(); i-- > 0;) {
    const Step& step = steps_[static_cast<std::size_t>(result.steps[i])];
    for (const auto* slots : {&step.in, &step.out}) {
      for (const int slot : *slots) {
        if (slot < 0 || kept[static_cast<std::size_t>(slot)]) continue;
        kept[static_cast<std::size_t>(slot)] = true;
        result.release[i].push_back(slot);
      }
    }
  }
  result.stretches = stretches_of(result.steps);
  result.sizes = sizes_;
  // Fed tensors belong to the caller.
  result.reusable = result.release;
  for (std::vector<int>& slots : result.reusable) {
    std::erase_if(slots, [&](int slot) { return std::ranges::find(fed, slot) != fed.end(); });
  }
  return result;
}

Program::Schedule& Program::schedule(const std::vector<int>& fed, const std::vector<int>& wanted) {
  constexpr std::size_t kMaxKept = 64;
  for (const auto& each : schedules_) {
    if (each->fed == fed && each->wanted == wanted) return *each;
  }
  if (schedules_.size() >= kMaxKept) schedules_.erase(schedules_.begin());
  schedules_.push_back(std::make_unique<Schedule>(make_schedule(fed, wanted)));
  return *schedules_.back();
}

std::vector<Program::Stretch> Program::stretches_of(const std::vector<int>& steps) const {
  std::vector<Stretch> result;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps_[static_cast<std::size_t>(steps[i])];
    const bool joins = step.shares || (step.light && step.small);
    if (result.empty() || joins != result.back().joins) {
      result.push_back({.begin = i, .joins = joins});
    }
    result.back().end = i + 1;
    result.back().shared += step.shared;
  }
  return result;
}

void Program::watch_sizes(Step& step) {
  const auto is_small = [&](int slot) {
    // Of constants (tables) only a part is read.
    if (slot < 0 || producer_[static_cast<std::size_t>(slot)] < 0) return true;
    const at::Tensor& value = slots_[static_cast<std::size_t>(slot)];
    return !value.defined() || value.numel() <= kSmall;
  };
  const bool small =
      std::ranges::all_of(step.in, is_small) && std::ranges::all_of(step.out, is_small);
  if (small != step.small) ++sizes_;
  step.small = small;
}

void Program::run_steps(Schedule& plan) {
  // Below that the pool is not worth its parallel region.
  constexpr std::int64_t kWorthAPool = 3;
  if (on_step_) begin_ = Clock::now();
  if (plan.sizes != sizes_) {
    plan.stretches = stretches_of(plan.steps);
    plan.sizes = sizes_;
  }
  for (Stretch& stretch : plan.stretches) {
    const std::int64_t before = times_shared();
    const auto run = [&] { run_stretch(plan, stretch); };
    if (stretch.shared >= kWorthAPool && !on_sample_) {
      run_in_pool(run);
    } else {
      run();
    }
    stretch.shared = stretch.joins ? times_shared() - before : 0;
  }
}

void Program::run_stretch(const Schedule& plan, const Stretch& stretch) {
  for (std::size_t i = stretch.begin; i < stretch.end; ++i) {
    Step& step = steps_[static_cast<std::size_t>(plan.steps[i])];
    Call call(slots_, step.in, step.out, plan.reusable[i]);
    const std::int64_t shared = times_shared();
    timed(step, [&] {
      if (place_.away()) bring(step);
      step.streamed < 0 ? run_step(step, call) : run_made(step, make_now(step), plan.reusable[i]);
    });
    step.shared = step.shares || step.light ? times_shared() - shared : 0;
    if (step.light) watch_sizes(step);
    if (on_sample_) {
      for (const int slot : step.out) show_samples(slot);
    }
    for (const int slot : plan.release[i]) slots_[static_cast<std::size_t>(slot)].reset();
  }
}

void Program::clear(const Schedule& plan) {
  for (const auto* slots : {&plan.fed, &plan.wanted}) {
    for (const int slot : *slots) {
      if (producer_[static_cast<std::size_t>(slot)] >= 0 ||
          std::ranges::find(plan.fed, slot) != plan.fed.end()) {
        slots_[static_cast<std::size_t>(slot)].reset();
      }
    }
  }
  for (const auto& slots : plan.release) {
    for (const int slot : slots) slots_[static_cast<std::size_t>(slot)].reset();
  }
}

std::vector<at::Tensor> Program::run_between(std::vector<std::pair<int, at::Tensor>> feeds,
                                             const std::vector<int>& wanted) {
  std::vector<int> fed;
  for (const auto& feed : feeds) fed.push_back(feed.first);
  // A feed may stand for a default that the model holds as a constant: that comes back afterwards.
  std::vector<std::pair<int, at::Tensor>> defaults;
  for (const int slot : fed) {
    at::Tensor& held = slots_[static_cast<std::size_t>(slot)];
    if (held.defined()) defaults.emplace_back(slot, held);
  }
  Schedule& plan = schedule(fed, wanted);
  for (auto& [slot, tensor] : feeds) slots_[static_cast<std::size_t>(slot)] = std::move(tensor);
  const auto tidy = [&] {
    clear(plan);
    for (const int slot : fed) twins_.erase(slot);
    for (auto& [slot, tensor] : defaults) slots_[static_cast<std::size_t>(slot)] = tensor;
  };
  std::vector<at::Tensor> results;
  try {
    if (on_sample_) {
      for (const int slot : fed) show_samples(slot);
      for (const int slot : constant_taps_) show_samples(slot);
    }
    run_steps(plan);
    for (const int slot : wanted) results.push_back(slots_[static_cast<std::size_t>(slot)]);
  } catch (...) {
    tidy();
    throw;
  }
  tidy();
  return results;
}

std::vector<at::Tensor> Program::run(std::span<const at::Tensor> inputs) {
  std::vector<std::pair<int, at::Tensor>> feeds;
  std::size_t next = 0;
  for (const auto* slots : {&graph_.inputs, &capture_slots_}) {
    for (const int slot : *slots) {
      if (next >= inputs.size()) break;
      if (inputs[next].defined()) feeds.emplace_back(slot, inputs[next]);
      ++next;
    }
  }
  return run_between(std::move(feeds), {graph_.outputs.begin(), graph_.outputs.end()});
}

}  // namespace quench::exec
