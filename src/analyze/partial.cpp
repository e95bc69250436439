// SPDX-License-Identifier: Apache-2.0
// One layer quantised at a time, from cached float values.
#include "analyze/partial.h"

#include <algorithm>
#include <mutex>
#include <set>

#include "base/format.h"
#include "passes/part_of.h"

namespace quench::analyze {
PartialRunner::PartialRunner(Simulator& simulator, std::vector<std::string> outputs,
                             const Context& context)
    : simulator_(simulator),
      outputs_(std::move(outputs)),
      context_(context),
      uses_(simulator.model().graph) {
  std::set<std::string> taps(outputs_.begin(), outputs_.end());
  for (const Layer& layer : simulator_.layers()) {
    segments_.push_back(make_segment(layer));
    const Segment& made = segments_.back();
    for (const auto* names : {&made.inputs, &made.fed, &made.bypass}) {
      taps.insert(names->begin(), names->end());
    }
  }
  const std::size_t count = taps.size();
  taps_.assign(taps.begin(), taps.end());
  workers_.emplace(simulator_.model(), SessionOptions{.taps = taps_}, context_);
  context_.info(format("analyze: {} layers, {} values cached a batch", segments_.size(), count));
}

PartialRunner::Segment PartialRunner::make_segment(const Layer& layer) {
  const Graph& graph = simulator_.model().graph;
  const Choice only = simulator_.only(layer.name);
  const QuantPlan plan = simulator_.plan_of(only);
  const Model whole = simulator_.quantized(only);
  Segment segment;
  std::set<std::string> quantized;
  for (const auto& [name, value] : plan.values) {
    if (value.kind != ValuePlan::Kind::Float) quantized.insert(name);
  }
  // The layer makes these; whatever else has a scale is a float value that is rounded.
  const std::set<std::string> made = {layer.node, layer.output};
  for (const std::string& name : quantized) {
    if (!made.contains(name)) segment.inputs.push_back(name);
    // What the layer alone reads need not come back.
    const NodeId reader = uses_.only_consumer(graph.find(name));
    const bool alone =
        reader >= 0 &&
        output_name(graph, graph.nodes[static_cast<std::size_t>(reader)]) == layer.node;
    if (!made.contains(name) && alone) continue;
    segment.seen.push_back(seen_as(whole.graph, name));
    segment.fed.push_back(name);
  }
  if (layer.stored) {
    add_stored(layer, segment);
  } else if (std::ranges::none_of(made, [&](const auto& n) { return quantized.contains(n); })) {
    segment.seen.push_back(layer.output);  // a target that leaves outputs in float
    segment.fed.push_back(layer.output);
  }
  segment.model = passes::part_of(whole, segment.seen, segment.inputs);
  find_readers(segment);
  return segment;
}

/// A layer that reads and makes floats.
void PartialRunner::add_stored(const Layer& layer, Segment& segment) const {
  const Graph& graph = simulator_.model().graph;
  const Node& node = node_called(graph, layer.node);
  for (const ValueId read : passes::values_read(graph, node)) {
    if (graph.constant(read) == nullptr) segment.inputs.push_back(graph[read].name);
  }
  for (const ValueId made : node.outputs) {
    if (made == kNoValue) continue;
    segment.seen.push_back(graph[made].name);
    segment.fed.push_back(graph[made].name);
  }
}

void PartialRunner::find_readers(Segment& segment) const {
  const Graph& graph = simulator_.model().graph;
  std::set<ValueId> changed;
  std::set<ValueId> bypass;
  for (const std::string& name : segment.fed) changed.insert(graph.find(name));
  const std::set<ValueId> fed = changed;
  // Nodes are in an order in which they can run: one walk finds all that lies behind.
  for (const Node& node : graph.nodes) {
    const std::vector<ValueId> inputs = passes::values_read(graph, node);
    const auto is_changed = [&](ValueId id) { return changed.contains(id); };
    if (std::ranges::none_of(inputs, is_changed)) continue;
    const bool replaced =
        std::ranges::all_of(node.outputs, [&](ValueId id) { return fed.contains(id); });
    if (replaced) continue;
    for (const ValueId id : inputs) {
      if (!is_changed(id) && graph.constant(id) == nullptr) bypass.insert(id);
    }
    changed.insert(node.outputs.begin(), node.outputs.end());
  }
  for (const ValueId id : bypass) segment.bypass.push_back(graph[id].name);
  for (const std::string& name : outputs_) {
    if (changed.contains(graph.find(name))) segment.wanted.push_back(name);
  }
}

const TensorMap& PartialRunner::set_batch(const evaluation::EvalBatch& batch) {
  std::vector<std::string> wanted;
  for (const std::string& name : taps_) {
    if (!batch.inputs.contains(name)) wanted.push_back(name);
  }
  Session& float_session = workers_->whole();
  const EngineValues inputs = float_session.enter(batch.inputs);
  cached_.clear();
  cached_ = float_session.compute(inputs, wanted);
  cached_.insert(inputs.begin(), inputs.end());
  EngineValues outputs;
  for (const std::string& name : outputs_) outputs[name] = cached_.at(name);
  expected_ = float_session.leave(outputs);
  return expected_;
}

void PartialRunner::run(std::span<const std::size_t> layers, const Take& take) {
  context_.check_cancelled();
  for (const std::size_t index : layers) {
    Segment& segment = segments_.at(index);
    if (segment.session) continue;
    segment.session =
        std::make_unique<Session>(std::move(*segment.model), SessionOptions{}, workers_->context());
    segment.model.reset();
  }
  std::mutex mutex;
  workers_->run(layers.size(), [&](Session& behind, std::size_t i) {
    const TensorMap outputs = run_one(segments_[layers[i]], behind);
    const std::lock_guard lock(mutex);
    take(layers[i], outputs);
  });
}

TensorMap PartialRunner::run_one(const Segment& segment, Session& behind) const {
  EngineValues feeds;
  for (const std::string& name : segment.inputs) feeds[name] = cached_.at(name);
  EngineValues made = segment.session->compute(feeds, segment.seen);
  feeds.clear();
  for (const std::string& name : segment.bypass) feeds[name] = cached_.at(name);
  for (std::size_t i = 0; i < segment.fed.size(); ++i) {
    feeds[segment.fed[i]] = std::move(made.at(segment.seen[i]));
  }
  TensorMap outputs;
  if (!segment.wanted.empty()) outputs = behind.leave(behind.compute(feeds, segment.wanted));
  for (const std::string& name : outputs_) outputs.try_emplace(name, expected_.at(name));
  return outputs;
}

}  // namespace quench::analyze
