// SPDX-License-Identifier: Apache-2.0
// Builds the program of a graph and runs it.
#include "qat/engine/program.h"

#include <algorithm>

#include "base/format.h"
#include "exec/engine/bridge.h"
#include "exec/engine/types.h"
#include "lower/params.h"
#include "ops/facts.h"
#include "passes/parallel_layers.h"
#include "qat/engine/mix.h"
#include "qat/engine/on_gpu.h"
#include "qat/engine/quanters.h"
#include "qat/trained_inputs.h"

namespace quench::qat {
namespace {

std::int64_t opset_of(const Model& model, const Node& node) {
  return model.opset(node.domain == "ai.onnx" ? "" : node.domain);
}

[[noreturn]] void fail_unsupported(const std::vector<std::string>& nodes) {
  constexpr std::size_t kMaxShown = 20;
  std::string text =
      format("{} node{} cannot be trained through:", nodes.size(), nodes.size() == 1 ? "" : "s");
  for (std::size_t i = 0; i < std::min(nodes.size(), kMaxShown); ++i) text += "\n  " + nodes[i];
  if (nodes.size() > kMaxShown) text += format("\n  and {} more", nodes.size() - kMaxShown);
  fail(ErrorKind::Unsupported, "{}", text);
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// Moves elements only: what it makes has the scale of what it reads, and is on it already.
bool keeps_integers(const Node& node) {
  return ops::is(node, ops::kMoves) || ops::is(node, ops::kView);
}

/// What layers are mapped by.
const std::string& type_of(const passes::ParallelLayers& parallel, const Node& node) {
  const std::string& kind = parallel.kind(node);
  return kind.empty() ? node.op_type : kind;
}

}  // namespace

Program::Program(const Model& model, const QuantPlan& plan, const QuantSolution& solution,
                 const MakeQuanter& make_quanter, const exec::Placement& place, Shards shards)
    : shards_(std::move(shards)), model_(model), graph_(model.graph), plan_(plan), place_(place) {
  slots_.resize(graph_.values().size());
  make_leaves();
  plan_weights(solution, make_quanter);
  add_steps();
  value_quanter_.resize(slots_.size(), nullptr);
  plan_values(solution, make_quanter);
}

void Program::make_leaves() {
  std::set<ValueId> trained;
  for (const Node& node : graph_.nodes) {
    for (const std::size_t input : trained_inputs(graph_, node)) trained.insert(node.inputs[input]);
  }
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const auto id = static_cast<ValueId>(i);
    Value& value = graph_[id];
    if (!value.constant || !exec::scalar_type(value.constant->dtype())) continue;
    at::Tensor tensor = placed(exec::to_torch(*value.constant).clone(), place_.away());
    if (trained.contains(id)) {
      leaves_[id] = tensor.requires_grad_(true);
      value.type = ValueType::of(*value.constant);
      value.constant.reset();  // no kernel may keep a copy of it
    }
    slots_[i] = std::move(tensor);
  }
}

void Program::plan_weights(const QuantSolution& solution, const MakeQuanter& make_quanter) {
  const passes::ParallelLayers parallel(model_.graph);
  for (const WeightPlan& each : plan_.weights) {
    const Node& node = node_called(graph_, each.node);
    const ValueId id = node.inputs[each.input];
    if (!slots_[static_cast<std::size_t>(id)].defined()) continue;
    QuanterSetup setup{.spec = each.spec, .is_weight = true, .device = place_.device};
    if (const auto found = solution.weights.find(each.key()); found != solution.weights.end()) {
      setup.start = found->second;
      setup.spec = found->second.spec;
    }
    auto quanter = make_quanter(type_of(parallel, node), graph_[id].name, setup);
    const int split = each.input == 1 ? parallel.split_axis(
                                            node, graph_[id].type.static_shape().value_or(Shape()))
                                      : -1;
    if (shards_ && split >= 0 && split != each.spec.axis) {
      quanter = shared_quanter(std::move(quanter), shards_, each.spec.axis < 0 ? -1 : split);
    }
    weights_.push_back({.key = each.key(),
                        .constant = id,
                        .slot = static_cast<int>(slots_.size()),
                        .quanter = std::move(quanter)});
    slots_.emplace_back();
  }
}

void Program::plan_bias(const Node& node, const std::string& name) {
  if (!plan_.of(graph_, node).quantize_bias || node.input(2) == kNoValue) return;
  const auto weight = std::ranges::find(weights_, WeightKey{name, 1}, &Weight::key);
  if (weight == weights_.end()) return;
  biases_.push_back({.weight = static_cast<std::size_t>(weight - weights_.begin()),
                     .input = graph_[node.inputs[0]].name,
                     .constant = node.inputs[2],
                     .slot = static_cast<int>(slots_.size())});
  slots_.emplace_back();
}

void Program::add_steps() {
  const passes::ParallelLayers parallel(model_.graph);
  std::vector<std::string> refused;
  const auto no = [&](const Node& node, const std::string& why) {
    refused.push_back(format("{}: {}", label(graph_, node), why));
  };
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    const Node& node = graph_.nodes[i];
    if (!subgraphs(node).empty()) {
      no(node, "graphs inside nodes are not trained through");
      continue;
    }
    const auto info = exec::find_kernel(node.domain, node.op_type);
    const std::string type = exec::type_refusal(graph_, node);
    if (!info || !type.empty()) {
      no(node, info ? type : "the engine has no kernel for this operator");
      continue;
    }
    exec::OpContext context{.graph = graph_, .node = node};
    context.opset = opset_of(model_, node);
    context.fast = false;
    exec::Kernel kernel = shards_ && passes::is_collective(node) ? joining_kernel(context, shards_)
                                                                 : info->make(context);
    if (kernel.run && shards_ && parallel.kind(node) == passes::kColumnParallel) {
      kernel.run = reading_whole(std::move(kernel.run), shards_);
    }
    if (!kernel.run) {
      no(node, kernel.refusal);
      continue;
    }
    const std::string name = output_name(graph_, node);
    plan_bias(node, name);
    Step step{.run = std::move(kernel.run),
              .label = label(graph_, node),
              .node = i,
              .there = place_.away() && exec::runs_anywhere(node)};
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const bool taken = std::ranges::find(context.taken, k) != context.taken.end();
      int slot = taken ? -1 : node.inputs[k];
      const auto weight = std::ranges::find(weights_, WeightKey{name, k}, &Weight::key);
      if (weight != weights_.end()) slot = weight->slot;
      const bool is_bias =
          k == 2 && !biases_.empty() && weights_[biases_.back().weight].key.first == name;
      if (is_bias) slot = biases_.back().slot;
      step.in.push_back(slot);
    }
    step.out.assign(node.outputs.begin(), node.outputs.end());
    steps_.push_back(std::move(step));
  }
  if (!refused.empty()) fail_unsupported(refused);
  producer_.assign(slots_.size(), -1);
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    for (const int slot : steps_[i].out) {
      if (slot >= 0) producer_[static_cast<std::size_t>(slot)] = static_cast<int>(i);
    }
  }
}

void Program::plan_values(const QuantSolution& solution, const MakeQuanter& make_quanter) {
  const passes::ParallelLayers parallel(model_.graph);
  const std::set<std::string> split = parallel.split_values();
  const Uses uses(graph_);
  for (const auto& [name, value] : plan_.values) {
    if (!lower::has_params(plan_, name)) continue;
    const ValueId id = graph_.find(name);
    if (id == kNoValue) continue;
    const bool shared = value.kind == ValuePlan::Kind::SharedWith;
    const std::string& root = shared ? value.source : name;
    auto& quanter = values_[root];
    if (quanter == nullptr) {
      const ValuePlan& planned = plan_.values.at(root);
      QuanterSetup setup{.spec = planned.spec, .bounds = planned.bounds, .device = place_.device};
      const auto found = solution.values.find(root);
      if (planned.kind == ValuePlan::Kind::Fixed) {
        setup.start = choose_params(planned.spec, {planned.fixed});
      }
      if (found != solution.values.end()) setup.start = found->second;
      if (setup.start) setup.spec = setup.start->spec;
      const NodeId maker = uses.producer[static_cast<std::size_t>(id)];
      const std::string op_type =
          maker < 0 ? "" : type_of(parallel, graph_.nodes[static_cast<std::size_t>(maker)]);
      const bool fixed = planned.kind == ValuePlan::Kind::Fixed;
      quanter = fixed ? make_fixed(setup) : make_quanter(op_type, root, setup);
      if (shards_ && !fixed && split.contains(root)) {
        quanter = shared_quanter(std::move(quanter), shards_, -1);
      }
    }
    const NodeId maker = uses.producer[static_cast<std::size_t>(id)];
    if (shared && maker >= 0) {
      const Node& node = graph_.nodes[static_cast<std::size_t>(maker)];
      const auto source = plan_.values.find(graph_[node.inputs[0]].name);
      const bool same = graph_[node.inputs[0]].name == root ||
                        (source != plan_.values.end() && source->second.source == root);
      if (same && keeps_integers(node)) continue;  // it is on that scale already
    }
    value_quanter_[static_cast<std::size_t>(id)] = quanter.get();
  }
}

void Program::train(bool on) {
  training_ = on;
  for (Weight& weight : weights_) weight.quanter->train(on);
  for (auto& [name, quanter] : values_) quanter->train(on);
}

int Program::slot_of(const std::string& value) const {
  const ValueId id = graph_.find(value);
  if (id == kNoValue) fail(ErrorKind::Usage, "the model has no value '{}'", value);
  return id;
}

Quanter* Program::quanter_at(int slot) {
  return quantizes_ ? value_quanter_[static_cast<std::size_t>(slot)] : nullptr;
}

Program::Schedule Program::make_schedule(const std::vector<int>& fed,
                                         const std::vector<int>& wanted) const {
  std::vector<bool> known(slots_.size(), false);
  for (const int slot : fed) known[static_cast<std::size_t>(slot)] = true;
  std::vector<bool> needed(steps_.size(), false);
  std::vector<bool> read(slots_.size(), false);
  std::vector<int> open = wanted;
  while (!open.empty()) {
    const auto slot = static_cast<std::size_t>(open.back());
    open.pop_back();
    if (known[slot]) continue;
    known[slot] = true;
    const int step = producer_[slot];
    if (step < 0) {
      const bool is_input = slot < graph_.values().size() && !slots_[slot].defined();
      if (is_input) {
        fail(ErrorKind::BadData, "the model input '{}' is missing", graph_.values()[slot].name);
      }
      continue;
    }
    needed[static_cast<std::size_t>(step)] = true;
    for (const int in : steps_[static_cast<std::size_t>(step)].in) {
      if (in >= 0) {
        read[static_cast<std::size_t>(in)] = true;
        open.push_back(in);
      }
    }
  }
  Schedule result;
  for (std::size_t i = 0; i < needed.size(); ++i) {
    if (needed[i]) result.steps.push_back(i);
  }
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    if (read[static_cast<std::size_t>(weights_[i].slot)]) result.weights.push_back(i);
  }
  for (std::size_t i = 0; i < biases_.size(); ++i) {
    if (read[static_cast<std::size_t>(biases_[i].slot)]) result.biases.push_back(i);
  }
  std::vector<bool> kept(slots_.size(), false);
  for (const int slot : wanted) kept[static_cast<std::size_t>(slot)] = true;
  result.release.resize(result.steps.size());
  for (std::size_t i = result.steps.size(); i-- > 0;) {
    const Step& step = steps_[result.steps[i]];
    for (const auto* slots : {&step.in, &step.out}) {
      for (const int slot : *slots) {
        const bool made = slot >= 0 && producer_[static_cast<std::size_t>(slot)] >= 0;
        if (!made || kept[static_cast<std::size_t>(slot)]) continue;
        kept[static_cast<std::size_t>(slot)] = true;
        result.release[i].push_back(slot);
      }
    }
  }
  return result;
}

const Program::Schedule& Program::schedule(const std::vector<int>& fed,
                                           const std::vector<int>& wanted) {
  const auto key = std::make_pair(fed, wanted);
  const auto found = schedules_.find(key);
  if (found != schedules_.end()) return found->second;
  return schedules_.emplace(key, make_schedule(fed, wanted)).first->second;
}

/// `real` on the scale of the products that it is added to, as the written model has it.
at::Tensor Program::quantized_bias(const Bias& bias, const at::Tensor& real) {
  const auto input = plan_.values.find(bias.input);
  if (input == plan_.values.end()) return real;
  const bool shared = input->second.kind == ValuePlan::Kind::SharedWith;
  const auto quanter = values_.find(shared ? input->second.source : bias.input);
  const Weight& weight = weights_[bias.weight];
  if (quanter == values_.end() || !quanter->second->ready() || !weight.quanter->ready())
    return real;
  const auto scale_for = [&](const Quanter& each) {
    return scale_of(each).to(real.device()).reshape({-1});
  };
  const at::Tensor input_scale = scale_for(*quanter->second).narrow(0, 0, 1);
  const at::Tensor weight_scale = scale_for(*weight.quanter);
  const bool fits = weight_scale.numel() == 1 || weight_scale.numel() == real.numel();
  if (!fits) return real;
  if (real.is_cuda()) return round_bias_on_gpu(real, weight_scale, input_scale);
  const at::Tensor scale = weight_scale * input_scale;
  const at::Tensor steps = at::round(real.detach().to(at::kDouble) / scale.to(at::kDouble));
  return real + (steps.to(at::kFloat) * scale - real.detach());
}

void Program::prepare_weights(const Schedule& schedule) {
  for (const std::size_t i : schedule.weights) {
    const Weight& weight = weights_[i];
    const at::Tensor leaf = folded_weight(i);
    slots_[static_cast<std::size_t>(weight.slot)] =
        quantizes_ ? weight.quanter->forward(leaf) : leaf;
  }
}

at::Tensor Program::placed(const at::Tensor& tensor, bool there) const {
  if (!tensor.defined() || tensor.is_cuda() == (there && place_.wants(tensor))) return tensor;
  return there ? place_.there(tensor) : place_.here(tensor);
}

void Program::run_step(const Step& step) {
  // What a step on the other side reads is copied for it; leaves stay where they are.
  std::vector<std::pair<int, at::Tensor>> moved;
  for (const int slot : step.in) {
    if (!place_.away() || slot < 0) continue;
    at::Tensor& value = slots_[static_cast<std::size_t>(slot)];
    const at::Tensor wanted = placed(value, step.there);
    if (!wanted.is_same(value)) moved.emplace_back(slot, std::exchange(value, wanted));
  }
  exec::Call call(slots_, step.in, step.out);
  try {
    step.run(call);
  } catch (Error& error) {
    throw error.in(step.label);
  } catch (const c10::Error& error) {
    fail(ErrorKind::BadData, "{}: {}", step.label, first_line(error.what_without_backtrace()));
  }
  for (auto& [slot, value] : moved) slots_[static_cast<std::size_t>(slot)] = std::move(value);
}

void Program::quantize_outputs(const Step& step) {
  for (const int slot : step.out) {
    if (slot < 0) continue;
    Quanter* quanter = quanter_at(slot);
    at::Tensor& value = slots_[static_cast<std::size_t>(slot)];
    if (quanter == nullptr || !value.defined()) continue;
    value = placed(value, place_.away());  // quanters have their numbers there
    const at::Tensor quantized = quanter->forward(value);
    value = drop_ > 0 ? mixed(value, quantized, {.share = drop_, .seed = random_()}) : quantized;
  }
}

std::vector<at::Tensor> Program::run(const Tensors& feeds, const std::vector<std::string>& wanted) {
  std::vector<int> fed;
  std::vector<int> outputs;
  for (const auto& [name, tensor] : feeds) {
    fed.push_back(slot_of(name));
    at::Tensor& slot = slots_[static_cast<std::size_t>(fed.back())];
    slot = placed(tensor, place_.away());
    // What is fed in the middle of the graph is as its readers see it; inputs are raw.
    Quanter* quanter =
        producer_[static_cast<std::size_t>(fed.back())] < 0 ? quanter_at(fed.back()) : nullptr;
    if (quanter != nullptr) slot = quanter->forward(slot);
  }
  for (const std::string& name : wanted) outputs.push_back(slot_of(name));
  const Schedule& plan = schedule(fed, outputs);
  prepare_weights(plan);
  // A bias needs the scale of what its layer reads, which the run itself may move.
  std::map<int, const Bias*> biases;
  for (const std::size_t i : plan.biases) biases[biases_[i].slot] = &biases_[i];
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = steps_[plan.steps[i]];
    for (const int slot : step.in) {
      const auto bias = biases.find(slot);
      if (bias == biases.end()) continue;
      slots_[static_cast<std::size_t>(slot)] = bias_for(*bias->second);
    }
    run_step(step);
    normalize_outputs(step);
    quantize_outputs(step);
    for (const int slot : plan.release[i]) slots_[static_cast<std::size_t>(slot)] = at::Tensor();
  }
  std::vector<at::Tensor> results;
  for (const int slot : outputs) results.push_back(slots_[static_cast<std::size_t>(slot)]);
  for (const int slot : fed) slots_[static_cast<std::size_t>(slot)] = at::Tensor();
  for (const int slot : outputs) {
    if (producer_[static_cast<std::size_t>(slot)] >= 0)
      slots_[static_cast<std::size_t>(slot)] = at::Tensor();
  }
  for (const std::size_t i : plan.weights)
    slots_[static_cast<std::size_t>(weights_[i].slot)] = at::Tensor();
  for (const std::size_t i : plan.biases)
    slots_[static_cast<std::size_t>(biases_[i].slot)] = at::Tensor();
  return results;
}

}  // namespace quench::qat
