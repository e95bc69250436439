// SPDX-License-Identifier: Apache-2.0
// The products' weights and scales are constants; what is found while the model runs is left out.
#include "retarget/split_dynamic.h"

#include <algorithm>

#include "base/format.h"

namespace quench::retargeting {
namespace {

class Splitter {
 public:
  explicit Splitter(Graph& graph) : graph_(graph), uses_(graph), made_(graph.nodes.size()) {}

  std::size_t run() {
    for (std::size_t i = 0; i < made_.size(); ++i) {
      const Node node = graph_.nodes[i];
      if (node.op_type == "MatMulInteger" || node.op_type == "ConvInteger") split_sums(node);
      if (node.op_type == "DynamicQuantizeMatMul") split_whole(node, i);
    }
    if (count_ > 0) finish();
    return count_;
  }

 private:
  const Node* maker(ValueId id) const {
    const NodeId made = id == kNoValue ? -1 : uses_.producer[static_cast<std::size_t>(id)];
    return made < 0 ? nullptr : &graph_.nodes[static_cast<std::size_t>(made)];
  }

  /// The place of the one node that reads a value, where it is of this type.
  NodeId reader(ValueId id, std::string_view op_type) const {
    const NodeId next = uses_.only_consumer(id);
    return next >= 0 && graph_.nodes[static_cast<std::size_t>(next)].op_type == op_type ? next : -1;
  }

  /// Of a Mul, what is not `known`.
  static ValueId other(const Node& mul, ValueId known) {
    if (mul.inputs.size() != 2) return kNoValue;
    return mul.inputs[0] == known ? mul.inputs[1] : mul.inputs[0];
  }

  void split_sums(const Node& node) {
    const Node* source = maker(node.input(0));
    if (source == nullptr || source->op_type != "DynamicQuantizeLinear" ||
        source->outputs.size() != 3 || node.input(2) != source->outputs[2]) {
      return;
    }
    const NodeId cast = reader(node.outputs[0], "Cast");
    if (cast < 0) return;
    const ValueId numbers = graph_.nodes[static_cast<std::size_t>(cast)].outputs[0];
    const NodeId last = reader(numbers, "Mul");
    if (last < 0) return;
    const Node& mul = graph_.nodes[static_cast<std::size_t>(last)];
    const Node* scales = maker(other(mul, numbers));
    if (scales == nullptr || scales->op_type != "Mul") return;
    const ValueId scale = other(*scales, source->outputs[1]);
    if (std::ranges::count(scales->inputs, source->outputs[1]) != 1) return;
    const bool convolution = node.op_type == "ConvInteger";
    Node real = node;
    real.op_type = convolution ? "Conv" : "MatMul";
    real.outputs = mul.outputs;
    put(std::move(real), {source->inputs[0], node.inputs[1], scale, node.input(3)}, convolution,
        static_cast<std::size_t>(last));
  }

  /// Its inputs come as a, b, scale and zero point of b, and a bias.
  void split_whole(const Node& node, std::size_t at) {
    Node real = node;
    real.op_type = "MatMul";
    real.domain.clear();
    const ValueId bias = node.input(4);
    if (bias != kNoValue) {
      const Value& result = graph_[node.outputs[0]];
      real.outputs = {graph_.add_fresh(result.name + "_product", result.type)};
    }
    const ValueId product = real.outputs[0];
    const bool done = put(std::move(real),
                          {node.inputs[0], node.input(1), node.input(2), node.input(3)}, false, at);
    if (done && bias != kNoValue) add(at, "Add", {product, bias}, node.outputs[0]);
  }

  struct Operands {
    ValueId x, weight, scale, zero;
  };

  /// Writes the float layer in place of node `at`; false where the weight's scales are not known.
  bool put(Node real, const Operands& from, bool convolution, std::size_t at) {
    const Tensor* weight = graph_.constant(from.weight);
    const Tensor* scale = graph_.constant(from.scale);
    const Tensor* zero = graph_.constant(from.zero);
    if (weight == nullptr || scale == nullptr || (from.zero != kNoValue && zero == nullptr)) {
      return false;
    }
    const std::int64_t axis = convolution ? 0 : weight->rank() - 1;
    const std::int64_t count = scale->size();
    if (weight->rank() < 2 ||
        (count != 1 && weight->shape()[static_cast<std::size_t>(axis)] != count) ||
        (zero != nullptr && zero->size() != 1 && zero->size() != count)) {
      return false;
    }
    const Shape shape = count == 1 ? Shape{} : Shape{count};
    std::vector<float> steps = zero == nullptr ? std::vector<float>() : to_float(*zero);
    const DType dtype = weight->dtype();
    std::vector<ValueId> inputs = {from.weight,
                                   graph_.add_constant(graph_[from.scale].name + "_flat",
                                                       Tensor::of<float>(shape, to_float(*scale)))};
    if (!steps.empty()) {
      steps.resize(static_cast<std::size_t>(count), steps.front());
      inputs.push_back(graph_.add_constant(graph_[from.zero].name + "_flat",
                                           convert(Tensor::of<float>(shape, steps), dtype)));
    }
    const ValueId floats = graph_.add_fresh(graph_[from.weight].name + "_DequantizeLinear");
    add(at, "DequantizeLinear", std::move(inputs), floats);
    if (count != 1) made_[at].back().set("axis", axis);
    real.inputs = {from.x, floats};
    made_[at].push_back(std::move(real));
    ++count_;
    return true;
  }

  void add(std::size_t at, std::string_view op, std::vector<ValueId> inputs, ValueId output) {
    Node node;
    node.op_type = op;
    node.name = format("{}_{}", graph_[output].name, op);
    node.inputs = std::move(inputs);
    node.outputs = {output};
    made_[at].push_back(std::move(node));
  }

  /// New nodes in the old ones' places; then, from the end, what nobody reads any more goes.
  void finish() {
    std::vector<Node> nodes;
    for (std::size_t i = 0; i < made_.size(); ++i) {
      if (made_[i].empty()) made_[i].push_back(std::move(graph_.nodes[i]));
      std::ranges::move(made_[i], std::back_inserter(nodes));
    }
    graph_.nodes = std::move(nodes);
    std::vector<int> readers(graph_.values().size(), 0);
    for (const ValueId id : graph_.outputs) ++readers[static_cast<std::size_t>(id)];
    for (const Node& node : graph_.nodes) {
      for (const ValueId id : node.inputs) {
        if (id != kNoValue) ++readers[static_cast<std::size_t>(id)];
      }
      for (const std::string& name : captured_names(node)) {
        const ValueId id = graph_.find(name);
        if (id != kNoValue) ++readers[static_cast<std::size_t>(id)];
      }
    }
    std::vector<bool> dead(graph_.nodes.size(), false);
    for (std::size_t i = dead.size(); i-- > 0;) {
      const Node& node = graph_.nodes[i];
      dead[i] = std::ranges::all_of(node.outputs, [&](ValueId id) {
        return id == kNoValue || readers[static_cast<std::size_t>(id)] == 0;
      });
      if (!dead[i]) continue;
      for (const ValueId id : node.inputs) {
        if (id != kNoValue) --readers[static_cast<std::size_t>(id)];
      }
    }
    compact(graph_, dead);
  }

  Graph& graph_;
  Uses uses_;
  std::vector<std::vector<Node>> made_;  ///< in place of each node; empty: it stays
  std::size_t count_ = 0;
};

}  // namespace

std::size_t split_dynamic(Model& model) { return Splitter(model.graph).run(); }

}  // namespace quench::retargeting
