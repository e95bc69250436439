// SPDX-License-Identifier: Apache-2.0
// What training changes of a program, and the model that it makes.
#include <algorithm>

#include "base/format.h"
#include "exec/engine/bridge.h"
#include "ops/facts.h"
#include "qat/engine/optimizer.h"
#include "qat/engine/program.h"
#include "qat/engine/quanters.h"

namespace quench::qat {
namespace {

/// How far weights move, in scales, where the size of 2-bit weights (about one scale) is right.
constexpr double kStride = 4.0 / 3;
/// Of a tensor's size: with 8 bits they must move by more than their scale to learn anything.
constexpr double kLeastStride = 0.1;

}  // namespace

std::vector<Trained> Program::weights() const {
  std::vector<Trained> all;
  for (const auto& [id, leaf] : leaves_) {
    // Vectors are biases, scales and shifts: nothing pulls them to zero.
    all.push_back({.name = graph_[id].name, .tensor = leaf, .decay = leaf.dim() > 1});
  }
  for (const Norm& norm : norms_) {
    const std::string& layer = weights_[norm.weight].key.first;
    all.push_back({.name = layer + "/norm_scale", .tensor = norm.scale});
    all.push_back({.name = layer + "/norm_shift", .tensor = norm.shift});
  }
  return all;
}

std::vector<Trained> Program::weights_by_scale() const {
  std::vector<Trained> all = weights();
  for (const Weight& weight : weights_) {
    const auto leaf = leaves_.find(weight.constant);
    if (leaf == leaves_.end()) continue;
    const double scale = scale_of(*weight.quanter).mean().item<double>();
    const double share = kStride * scale / size_of(leaf->second);
    for (Trained& each : all) {
      if (each.tensor.is_same(leaf->second)) each.rate = std::clamp(share, kLeastStride, 1.0);
    }
  }
  return all;
}

std::vector<Trained> Program::quanter_parameters() const {
  std::vector<Trained> all;
  const auto add = [&](const std::string& name, const Quanter& quanter) {
    for (Trained& each : quanter.parameters()) {
      each.name = name + "/" + each.name;
      all.push_back(std::move(each));
    }
  };
  for (const Weight& weight : weights_) add(graph_[weight.constant].name, *weight.quanter);
  for (const auto& [name, quanter] : values_) add(name, *quanter);
  return all;
}

std::vector<at::Tensor> Program::state() const {
  std::vector<at::Tensor> all;
  for (const Trained& each : weights()) all.push_back(each.tensor);
  for (const Trained& each : quanter_parameters()) all.push_back(each.tensor);
  for (const Norm& norm : norms_) all.insert(all.end(), {norm.mean, norm.variance});
  for (const Weight& weight : weights_) {
    std::ranges::move(weight.quanter->state(), std::back_inserter(all));
  }
  for (const auto& [name, quanter] : values_) {
    std::ranges::move(quanter->state(), std::back_inserter(all));
  }
  return all;
}

Model Program::float_model() const {
  Model model = model_;
  const auto put = [&](const std::string& name, const at::Tensor& tensor) {
    const ValueId id = model.graph.find(name);
    model.graph[id].constant = exec::from_torch(tensor.detach().to(at::kCPU).contiguous().clone());
  };
  for (const auto& [id, leaf] : leaves_) put(graph_[id].name, leaf);
  for (const Norm& norm : norms_) {
    put(graph_[weights_[norm.weight].constant].name, folded_weight(norm.weight));
    put(graph_[norm.bias].name, folded_bias(norm));
  }
  for (const Weight& weight : weights_) {
    const at::Tensor& leaf = slots_[static_cast<std::size_t>(weight.constant)];
    const at::Tensor written = weight.quanter->written(leaf);
    if (!written.is_same(leaf)) put(graph_[weight.constant].name, written);
  }
  return model;
}

QuantSolution Program::solution() const {
  QuantSolution solution;
  for (const Weight& weight : weights_) solution.weights[weight.key] = weight.quanter->params();
  for (const auto& [name, value] : plan_.values) {
    const bool shared = value.kind == ValuePlan::Kind::SharedWith;
    const auto quanter = values_.find(shared ? value.source : name);
    if (quanter == values_.end() || value.kind == ValuePlan::Kind::Float) continue;
    solution.values[name] = quanter->second->params();
  }
  return solution;
}

Quanter* Program::quanter_of(const WeightKey& key) {
  const auto found = std::ranges::find(weights_, key, &Weight::key);
  return found == weights_.end() ? nullptr : found->quanter.get();
}

void Program::replace_quanter(const WeightKey& key, std::unique_ptr<Quanter> quanter) {
  const auto found = std::ranges::find(weights_, key, &Weight::key);
  if (found == weights_.end()) fail(ErrorKind::Internal, "no weight of '{}' is planned", key.first);
  found->quanter = std::move(quanter);
}

Quanter* Program::quanter_of(const std::string& value) {
  const auto planned = plan_.values.find(value);
  if (planned == plan_.values.end()) return nullptr;
  const bool shared = planned->second.kind == ValuePlan::Kind::SharedWith;
  const auto found = values_.find(shared ? planned->second.source : value);
  return found == values_.end() ? nullptr : found->second.get();
}

namespace {

std::vector<int> ids(const Graph& graph, const auto& names) {
  std::vector<int> result;
  for (const std::string& name : names) result.push_back(graph.find(name));
  return result;
}

}  // namespace

std::vector<WeightKey> Program::weights_between(const std::set<std::string>& feeds,
                                                const std::vector<std::string>& wanted) const {
  std::vector<WeightKey> keys;
  for (const std::size_t i : make_schedule(ids(graph_, feeds), ids(graph_, wanted)).weights) {
    keys.push_back(weights_[i].key);
  }
  return keys;
}

std::vector<std::string> Program::values_between(const std::set<std::string>& feeds,
                                                 const std::vector<std::string>& wanted) const {
  std::vector<std::string> names;
  for (const std::size_t i : make_schedule(ids(graph_, feeds), ids(graph_, wanted)).steps) {
    for (const int slot : steps_[i].out) {
      if (slot >= 0 && value_quanter_[static_cast<std::size_t>(slot)] != nullptr) {
        names.push_back(graph_[slot].name);
      }
    }
  }
  return names;
}

at::Tensor Program::leaf(const std::string& constant) const {
  const auto found = leaves_.find(graph_.find(constant));
  return found == leaves_.end() ? at::Tensor() : found->second;
}

std::vector<at::Tensor> Program::biases_of(const std::vector<WeightKey>& keys) const {
  std::vector<at::Tensor> result;
  for (const WeightKey& key : keys) {
    const Node& node = node_called(graph_, key.first);
    const int bias = ops::facts(node).bias;
    const auto found =
        bias < 0 ? leaves_.end() : leaves_.find(node.input(static_cast<std::size_t>(bias)));
    if (found != leaves_.end()) result.push_back(found->second);
  }
  return result;
}

std::string Program::constant_of(const WeightKey& key) const {
  const auto found = std::ranges::find(weights_, key, &Weight::key);
  return found == weights_.end() ? "" : graph_[found->constant].name;
}

void Program::check_gradients(const Tensors& feeds, const std::vector<std::string>& wanted) {
  std::vector<std::string> names;
  std::vector<const Step*> makers;
  const std::vector<int> outputs = ids(graph_, wanted);
  std::vector<int> fed;
  for (const auto& [name, tensor] : feeds) fed.push_back(graph_.find(name));
  for (const std::size_t i : make_schedule(fed, outputs).steps) {
    for (const int slot : steps_[i].out) {
      if (slot < 0) continue;
      names.push_back(graph_[slot].name);
      makers.push_back(&steps_[i]);
    }
  }
  const std::vector<at::Tensor> values = run(feeds, names);
  std::map<int, bool> learns;  // by slot: a gradient reaches it
  for (std::size_t i = 0; i < values.size(); ++i) {
    learns[graph_.find(names[i])] = values[i].defined() && values[i].requires_grad();
  }
  const bool any = std::ranges::any_of(wanted, [&](const std::string& name) {
    const auto found = learns.find(graph_.find(name));
    return found != learns.end() && found->second;
  });
  std::vector<std::string> stuck;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!values[i].defined() || values[i].requires_grad()) continue;
    // Integers beside a way that learns are indices and shapes.
    if (any && !values[i].is_floating_point()) continue;
    const bool reads = std::ranges::any_of(makers[i]->in, [&](int slot) {
      const auto found = learns.find(slot);
      return found != learns.end() && found->second;
    });
    if (reads) stuck.push_back(makers[i]->label);
  }
  if (stuck.empty()) return;
  fail(ErrorKind::Unsupported, "these nodes have no gradient, and weights lie before them: {}",
       fmt::join(stuck, ", "));
}

}  // namespace quench::qat
