// SPDX-License-Identifier: Apache-2.0
// Functions of one 8-bit value: 256 results, computed once. However many steps lead from one byte
// tensor to a QuantizeLinear, on however many branches (x times the gate of x), they are one table.
// What ends in floats is one too, of floats.
#include <algorithm>
#include <map>
#include <set>

#include "exec/rewrites/integer.h"
#include "ops/facts.h"

namespace quench::exec::rewrites {
namespace {

bool is_function(const Node& node) { return ops::is(node, ops::kFunction); }

/// Takes longer than to look its result up.
bool is_costly(const Node& node) { return is_function(node) && !ops::is(node, ops::kCheap); }

/// Of two operands, element by element.
bool is_binary(const Node& node) {
  return ops::is(node, ops::kOperands) && node.inputs.size() == 2;
}

bool is_table(const Node& node) { return node.domain == kEngineDomain && node.op_type == "Table"; }

/// Nodes between some byte tensors and a QuantizeLinear.
struct Region {
  std::set<NodeId> nodes;
  std::set<ValueId> sources;  ///< the byte tensors
  std::int64_t channels = 0;  ///< of axis 1, where constants differ along it
};

class TableRule {
 public:
  TableRule(Rewriter& rewriter, NodeId id) : rewriter_(rewriter), last_(id) {}

  bool run() {
    if (clips_bytes(rewriter_.node(last_))) {
      const Node clip = rewriter_.node(last_);
      put({.nodes = {last_}, .sources = {clip.inputs[0]}}, clip);
      return true;
    }
    const Node* quantise = rewriter_.as(last_, "QuantizeLinear");
    const auto to = quantise == nullptr ? std::nullopt : params_of(rewriter_, *quantise);
    if (!to || !to->per_tensor) return false;
    Region region;
    if (!take(region, last_)) return false;
    std::optional<Region> best;
    constexpr int kMaxTables = 16;
    for (int i = 0; i < kMaxTables; ++i) {
      if (region.sources.size() == 1) best = region;
      if (!grow(region)) break;
    }
    if (!best) return false;
    put(*best, *quantise);
    return true;
  }

  /// A function whose result stays float.
  bool run_float() {
    const Node end = rewriter_.node(last_);
    if (!is_step(end) || end.op_type == "DequantizeLinear" ||
        rewriter_.graph()[end.outputs[0]].type.dtype != DType::Float32) {
      return false;
    }
    Region region;
    if (!take(region, last_) || region.sources.size() != 1 || region.channels != 0) return false;
    const bool costly =
        std::ranges::any_of(region.nodes, [&](NodeId id) { return is_costly(rewriter_.node(id)); });
    if (costly) put(region, end);
    return costly;
  }

 private:
  /// A hard gate of ours, or a bound of another tool's.
  bool clips_bytes(const Node& node) const {
    if (node.op_type != "Clip" || !node.domain.empty() || node.inputs.empty()) return false;
    const DType dtype = rewriter_.graph()[node.inputs[0]].type.dtype;
    return (dtype == DType::UInt8 || dtype == DType::Int8) &&
           rewriter_.constant(node.inputs[0]) == nullptr &&
           std::all_of(node.inputs.begin() + 1, node.inputs.end(), [&](ValueId bound) {
             return bound == kNoValue || rewriter_.constant(bound) != nullptr;
           });
  }

  /// Adds a node and everything in front of it up to byte tensors; false where something else than
  /// a function of them is met.
  bool take(Region& region, NodeId first) const {
    std::vector<NodeId> open = {first};
    while (!open.empty()) {
      const NodeId id = open.back();
      open.pop_back();
      if (!region.nodes.insert(id).second) continue;
      constexpr std::size_t kMaxNodes = 64;
      if (region.nodes.size() > kMaxNodes) return false;
      const Node& node = rewriter_.node(id);
      if (is_table(node)) region.channels = std::max(region.channels, node.get_int("channels", 0));
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (!take_input(region, node, i, open)) return false;
      }
    }
    return true;
  }

  bool take_input(Region& region, const Node& node, std::size_t i,
                  std::vector<NodeId>& open) const {
    const ValueId value = node.inputs[i];
    const bool binary = is_binary(node);
    if (value == kNoValue) return true;
    if (const Tensor* constant = rewriter_.constant(value)) {
      const bool operand = binary || (i == 0 && node.op_type == "DequantizeLinear");
      return !operand || fits(*constant, region);
    }
    if (i > 0 && !binary) return false;
    const bool reads_bytes = node.op_type == "DequantizeLinear" || is_table(node);
    if (reads_bytes) {
      region.sources.insert(value);
      return true;
    }
    // A value that may be fed or asked for stays a value.
    const NodeId maker = rewriter_.maker(value);
    if (rewriter_.must_stay(value) || !rewriter_.alive(maker) || !is_step(rewriter_.node(maker))) {
      return false;
    }
    open.push_back(maker);
    return true;
  }

  /// One number, or one a channel: then there is a table for each channel.
  bool fits(const Tensor& constant, Region& region) const {
    if (constant.size() == 1 && constant.rank() <= 1) return true;
    constexpr std::int64_t kMaxChannels = 4096;
    const auto& shape = rewriter_.graph()[rewriter_.node(last_).inputs[0]].type.shape;
    if (!shape || shape->size() < 2 || !(*shape)[1].known()) return false;
    const std::int64_t channels = (*shape)[1].value;
    const auto axis = constant.rank() - (std::ssize(*shape) - 1);
    if (axis < 0 || axis > 1 || constant.size() != channels || channels > kMaxChannels ||
        constant.shape()[static_cast<std::size_t>(axis)] != channels) {
      return constant.size() == 1 && constant.rank() <= std::ssize(*shape);
    }
    region.channels = channels;
    return true;
  }

  /// A function of floats, or the DequantizeLinear that makes them.
  bool is_step(const Node& node) const {
    if (!node.domain.empty() || node.outputs.size() != 1 || node.inputs.empty()) return false;
    if (node.op_type != "DequantizeLinear") {
      return is_function(node) || is_binary(node);
    }
    const auto params = params_of(rewriter_, node);
    return params && params->per_tensor;
  }

  /// Takes the newest byte tensor into the region, with what makes it.
  bool grow(Region& region) const {
    ValueId newest = kNoValue;
    for (const ValueId source : region.sources) {
      if (newest == kNoValue || rewriter_.maker(source) > rewriter_.maker(newest)) newest = source;
    }
    const NodeId maker = rewriter_.maker(newest);
    if (!rewriter_.alive(maker)) return false;
    const std::vector<NodeId> readers(region.nodes.begin(), region.nodes.end());
    const Node* quantise = rewriter_.as(maker, "QuantizeLinear");
    const auto params = quantise == nullptr ? std::nullopt : params_of(rewriter_, *quantise);
    const bool function = (params && params->per_tensor) || is_table(rewriter_.node(maker));
    if (!function || !rewriter_.private_to(newest, readers)) return false;
    region.sources.erase(newest);
    return take(region, maker);
  }

  /// The region as a graph of one byte in, one result out.
  Graph body(const Region& region) const {
    Graph graph;
    std::map<ValueId, ValueId> known;
    const ValueId source = *region.sources.begin();
    const DType from = rewriter_.graph()[source].type.dtype;
    known[source] = graph.add_value({.name = "x", .type = ValueType::tensor(from)});
    graph.inputs = {known[source]};
    for (const NodeId id : region.nodes) {
      Node node = rewriter_.node(id);
      for (ValueId& input : node.inputs) {
        if (input == kNoValue) continue;
        if (!known.contains(input)) {
          known[input] = graph.add_constant("constant", *rewriter_.constant(input));
        }
        input = known[input];
      }
      const ValueId out = rewriter_.result(id);
      known[out] = graph.add_fresh("y", ValueType::tensor(rewriter_.graph()[out].type.dtype));
      node.outputs = {known[out]};
      graph.outputs = node.outputs;
      graph.nodes.push_back(std::move(node));
    }
    return graph;
  }

  /// `end` makes the results.
  void put(const Region& region, const Node& end) {
    Node table = engine_node("Table", end.name, {*region.sources.begin()}, end.outputs);
    table.set("body", GraphBox(body(region)));
    if (region.channels > 0) {
      table.set("channels", region.channels);
      table.set("rank", std::ssize(*rewriter_.graph()[end.inputs[0]].type.shape));
    }
    rewriter_.replace(last_, std::move(table));
    // From the end: what nobody reads any more goes.
    for (auto id = region.nodes.rbegin(); id != region.nodes.rend(); ++id) {
      if (*id != last_ && rewriter_.unread(rewriter_.result(*id))) rewriter_.remove(*id);
    }
  }

  Rewriter& rewriter_;
  NodeId last_;
};

}  // namespace

bool integer_table(Rewriter& rewriter, NodeId id) {
  TableRule rule(rewriter, id);
  return rule.run();
}

bool float_table(Rewriter& rewriter, NodeId id) {
  TableRule rule(rewriter, id);
  return rule.run_float();
}

}  // namespace quench::exec::rewrites
