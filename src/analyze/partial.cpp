// SPDX-License-Identifier: Apache-2.0
// One layer quantised at a time, from cached float values.
#include "analyze/partial.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>

#include "base/format.h"
#include "base/parallel.h"

namespace quench::analyze {
namespace {

/// Every worker packs the float model's weights for itself: no more of them than fit into this.
constexpr std::int64_t kWorkerBytes = std::int64_t{1} << 30;

/// Everything a node reads, the captures of graphs inside it included.
std::vector<ValueId> reads(const Graph& graph, const Node& node) {
  std::vector<ValueId> ids;
  for (const ValueId id : node.inputs) {
    if (id != kNoValue) ids.push_back(id);
  }
  for (const std::string& name : captured_names(node)) {
    if (const ValueId id = graph.find(name); id != kNoValue) ids.push_back(id);
  }
  return ids;
}

/// The nodes of `whole` between `inputs` and `outputs`, as a model of its own.
Model cut_out(const Model& whole, const std::vector<std::string>& inputs,
              const std::vector<std::string>& outputs) {
  Model part = whole;
  Graph& graph = part.graph;
  const Uses uses(graph);
  std::vector<bool> dead(graph.nodes.size(), true);
  std::set<ValueId> known;
  for (const std::string& name : inputs) known.insert(graph.find(name));
  std::vector<ValueId> open;
  for (const std::string& name : outputs) open.push_back(graph.find(name));
  graph.outputs = open;
  while (!open.empty()) {
    const ValueId id = open.back();
    open.pop_back();
    const NodeId maker = uses.producer[static_cast<std::size_t>(id)];
    if (!known.insert(id).second || maker < 0 || !dead[static_cast<std::size_t>(maker)]) continue;
    dead[static_cast<std::size_t>(maker)] = false;
    for (const ValueId read : reads(graph, graph.nodes[static_cast<std::size_t>(maker)])) {
      open.push_back(read);
    }
  }
  graph.inputs.clear();
  for (const std::string& name : inputs) graph.inputs.push_back(graph.find(name));
  compact(graph, dead);
  return part;
}

}  // namespace

PartialRunner::PartialRunner(Simulator& simulator, std::vector<std::string> outputs,
                             const Context& context)
    : simulator_(simulator),
      outputs_(std::move(outputs)),
      context_(context),
      uses_(simulator.model().graph),
      alone_(context.alone()) {
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
  float_session_ =
      std::make_unique<Session>(simulator_.model(), SessionOptions{.taps = taps_}, context_);
  open_workers();
  context_.info(format("analyze: {} layers, {} values cached a batch", segments_.size(), count));
}

void PartialRunner::open_workers() {
  std::int64_t bytes = 1;
  for (const Value& value : simulator_.model().graph.values()) {
    if (value.constant) bytes += static_cast<std::int64_t>(value.constant->num_bytes());
  }
  const std::int64_t most = std::min<std::int64_t>(context_.num_threads(), kWorkerBytes / bytes);
  if (most < 2 || context_.device != "cpu") return;  // a GPU is one worker
  alone_.threads = 1;
  for (std::int64_t i = 0; i < most; ++i) {
    workers_.emplace_back(simulator_.model(), SessionOptions{.taps = taps_}, alone_);
  }
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
  segment.model = cut_out(whole, segment.inputs, segment.seen);
  find_readers(segment);
  return segment;
}

/// A layer that reads and makes floats.
void PartialRunner::add_stored(const Layer& layer, Segment& segment) const {
  const Graph& graph = simulator_.model().graph;
  const Node& node = node_called(graph, layer.node);
  for (const ValueId read : reads(graph, node)) {
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
    const std::vector<ValueId> inputs = reads(graph, node);
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
  const EngineValues inputs = float_session_->enter(batch.inputs);
  cached_.clear();
  cached_ = float_session_->compute(inputs, wanted);
  cached_.insert(inputs.begin(), inputs.end());
  EngineValues outputs;
  for (const std::string& name : outputs_) outputs[name] = cached_.at(name);
  expected_ = float_session_->leave(outputs);
  return expected_;
}

void PartialRunner::run(std::span<const std::size_t> layers, const Take& take) {
  context_.check_cancelled();
  for (const std::size_t index : layers) {
    Segment& segment = segments_.at(index);
    if (segment.session) continue;
    segment.session =
        std::make_unique<Session>(std::move(*segment.model), SessionOptions{}, alone_);
    segment.model.reset();
  }
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  const auto work = [&](Session& behind) {
    for (std::size_t i = next++; i < layers.size(); i = next++) {
      alone_.check_cancelled();
      const TensorMap outputs = run_one(segments_[layers[i]], behind);
      const std::lock_guard lock(mutex);
      take(layers[i], outputs);
    }
  };
  if (workers_.empty()) return work(*float_session_);
  const auto count = static_cast<std::int64_t>(workers_.size());
  parallel_for(count, static_cast<int>(count), [&](std::int64_t begin, std::int64_t) {
    work(workers_[static_cast<std::size_t>(begin)]);
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
