// SPDX-License-Identifier: Apache-2.0
// Bookkeeping of a graph that is being rewritten.
#include "passes/rewriter.h"

#include <algorithm>

namespace quench::passes {
namespace {

std::size_t at(std::int32_t id) { return static_cast<std::size_t>(id); }

void visit(Graph& graph, const Model& model, const PassOptions& options,
           const std::function<void(Rewriter&)>& rewrite, PassReport& report) {
  for (Node& node : graph.nodes) {
    for (Graph* inner : mutable_subgraphs(node)) visit(*inner, model, options, rewrite, report);
  }
  Rewriter rewriter(graph, model, options);
  rewrite(rewriter);
  report.changes += rewriter.finish();
}

}  // namespace

Rewriter::Rewriter(Graph& graph, const Model& model, const PassOptions& options)
    : graph_(graph),
      options_(options),
      opset_(options.opset != 0 ? options.opset : model.opset()),
      uses_(graph),
      dead_(graph.nodes.size(), false),
      overridable_(graph.values().size(), false) {
  // Before IR version 4 every constant had to be listed as an input too.
  if (model.ir_version < 4 || !options.inputs_override) return;
  for (const ValueId id : graph.inputs) overridable_[at(id)] = true;
}

ValueId Rewriter::result(NodeId id) const {
  return node(id).outputs.empty() ? kNoValue : node(id).outputs[0];
}

const Node* Rewriter::as(NodeId id, std::string_view op) const {
  if (!alive(id)) return nullptr;
  const Node& found = node(id);
  const bool fits = found.op_type == op && found.domain.empty() && found.outputs.size() == 1;
  return fits ? &found : nullptr;
}

NodeId Rewriter::maker(ValueId id) const {
  return id == kNoValue ? kNoNode : uses_.producer[at(id)];
}

const Node* Rewriter::maker_as(ValueId id, std::string_view op) const { return as(maker(id), op); }

NodeId Rewriter::next(ValueId id) const {
  return must_stay(id) ? kNoNode : uses_.only_consumer(id);
}

bool Rewriter::private_to(ValueId id, std::span<const NodeId> nodes) const {
  return !must_stay(id) && std::ranges::all_of(uses_.consumers[at(id)], [&](NodeId reader) {
    return std::ranges::find(nodes, reader) != nodes.end();
  });
}

bool Rewriter::must_stay(ValueId id) const {
  return id == kNoValue || uses_.is_output[at(id)] || options_.keep.contains(graph_[id].name);
}

bool Rewriter::may_rename(ValueId id) const {
  return !must_stay(id) && std::ranges::all_of(uses_.consumers[at(id)], [&](NodeId reader) {
    return subgraphs(node(reader)).empty();
  });
}

bool Rewriter::has_extra_outputs(const Node& node) const {
  for (std::size_t i = 1; i < node.outputs.size(); ++i) {
    const ValueId id = node.outputs[i];
    if (id != kNoValue && (must_stay(id) || !uses_.consumers[at(id)].empty())) return true;
  }
  return false;
}

const Tensor* Rewriter::constant(ValueId id) const {
  return id == kNoValue || overridable_[at(id)] ? nullptr : graph_.constant(id);
}

std::optional<double> Rewriter::scalar(ValueId id) const {
  const Tensor* tensor = constant(id);
  if (tensor == nullptr || tensor->size() != 1 || tensor->rank() > 1 || !is_real(tensor->dtype())) {
    return std::nullopt;
  }
  return to_doubles(*tensor).front();
}

ValueId Rewriter::replace_constant(ValueId old, Tensor tensor, std::string_view stem) {
  if (old == kNoValue) return add_constant(stem, std::move(tensor));
  if (must_stay(old) || overridable_[at(old)] || uses_.consumers[at(old)].size() != 1) {
    return add_constant(graph_[old].name, std::move(tensor));
  }
  graph_[old].type = ValueType::of(tensor);
  graph_[old].constant = std::move(tensor);
  return old;
}

ValueId Rewriter::add_constant(std::string_view stem, Tensor tensor) {
  const ValueId id = graph_.add_constant(stem, std::move(tensor));
  uses_.producer.push_back(kNoNode);
  uses_.consumers.emplace_back();
  uses_.is_output.push_back(false);
  overridable_.push_back(false);
  return id;
}

ValueId Rewriter::add_value(std::string_view stem, ValueType type) {
  const ValueId id = graph_.add_fresh(stem, std::move(type));
  uses_.producer.push_back(kNoNode);
  uses_.consumers.emplace_back();
  uses_.is_output.push_back(false);
  overridable_.push_back(false);
  return id;
}

void Rewriter::remove(NodeId id) {
  unlink(id);
  dead_[at(id)] = true;
  ++changes_;
}

bool Rewriter::unread(ValueId id) const {
  return id == kNoValue || (!must_stay(id) && uses_.consumers[at(id)].empty());
}

void Rewriter::unlink(NodeId id) {
  for (const ValueId input : node(id).inputs) {
    // Thousands of nodes may read one constant; nobody asks for its readers after a change.
    if (input != kNoValue && !graph_[input].constant) std::erase(uses_.consumers[at(input)], id);
  }
  for (const ValueId output : node(id).outputs) {
    if (output != kNoValue) uses_.producer[at(output)] = kNoNode;
  }
}

void Rewriter::replace(NodeId place, Node fused, std::span<const NodeId> dead) {
  for (const NodeId id : dead) {
    unlink(id);
    dead_[at(id)] = true;
  }
  unlink(place);
  for (const ValueId input : fused.inputs) {
    if (input != kNoValue && !graph_[input].constant) uses_.consumers[at(input)].push_back(place);
  }
  for (const ValueId output : fused.outputs) {
    if (output != kNoValue) uses_.producer[at(output)] = place;
  }
  dead_[at(place)] = false;
  graph_.nodes[at(place)] = std::move(fused);
  ++changes_;
}

void Rewriter::merge(ValueId gone, ValueId stays, NodeId removed) {
  unlink(removed);
  dead_[at(removed)] = true;
  for (const NodeId reader : uses_.consumers[at(gone)]) {
    std::ranges::replace(graph_.nodes[at(reader)].inputs, gone, stays);
    uses_.consumers[at(stays)].push_back(reader);
  }
  uses_.consumers[at(gone)].clear();
  if (const NodeId made_by = maker(gone); made_by != kNoNode) {
    std::ranges::replace(graph_.nodes[at(made_by)].outputs, gone, stays);
    uses_.producer[at(stays)] = made_by;
    uses_.producer[at(gone)] = kNoNode;
  }
  if (graph_[stays].type.kind == ValueType::Kind::Unknown) graph_[stays].type = graph_[gone].type;
  ++changes_;
}

std::size_t Rewriter::finish() {
  if (changes_ != 0) compact(graph_, dead_);
  return changes_;
}

PassReport rewrite_graphs(Model& model, const PassOptions& options,
                          const std::function<void(Rewriter&)>& rewrite) {
  PassReport report;
  visit(model.graph, model, options, rewrite, report);
  return report;
}

std::vector<Graph*> mutable_subgraphs(Node& node) {
  std::vector<Graph*> result;
  for (Attribute& attribute : node.attributes) {
    if (auto* box = std::get_if<GraphBox>(&attribute.data)) result.push_back(&**box);
    if (auto* boxes = std::get_if<std::vector<GraphBox>>(&attribute.data)) {
      for (GraphBox& each : *boxes) result.push_back(&*each);
    }
  }
  return result;
}

std::vector<double> to_doubles(const Tensor& tensor) {
  const Tensor wide = convert(tensor, DType::Float64);
  const auto data = wide.data<double>();
  return {data.begin(), data.end()};
}

bool is_real(DType dtype) noexcept {
  return dtype == DType::Float32 || dtype == DType::Float16 || dtype == DType::BFloat16 ||
         dtype == DType::Float64;
}

}  // namespace quench::passes
