// SPDX-License-Identifier: Apache-2.0
// Pairs the tensors of two models, node by node.
#include "report/debug_pairs.h"

#include <map>

#include "analyze/simulator.h"
#include "plan/facts.h"
#include "quant/dequantize_linear.h"

namespace quench {
namespace {

bool is_cast(const Node& node) {
  return node.op_type == "QuantizeLinear" || node.op_type == "DequantizeLinear";
}

/// Pairs the inputs and outputs of a quantised node with those of the node it was made from.
class Pairing {
 public:
  Pairing(const Graph& real, const Graph& quantized)
      : real_(real), quantized_(quantized), uses_(quantized) {
    for (const Node& node : real.nodes) originals_[plan::key_of(real, node)] = &node;
  }

  void add(const Node& node, std::vector<TensorPair>& pairs) const {
    const std::string key = plan::key_of(quantized_, node);
    const auto found = originals_.find(key);
    if (found == originals_.end()) return;
    const std::size_t first = pairs.size();
    if (node.op_type == "MatMulInteger" && found->second->op_type != node.op_type) {
      add_product(node, *found->second, pairs);
    } else {
      add_side(node.inputs, found->second->inputs, true, pairs);
      add_side(node.outputs, found->second->outputs, false, pairs);
    }
    for (std::size_t i = first; i < pairs.size(); ++i) {
      pairs[i].node = key;
      pairs[i].op_type = node.op_type;
    }
  }

 private:
  const Node* maker(ValueId id) const {
    const NodeId node = id == kNoValue ? -1 : uses_.producer[static_cast<std::size_t>(id)];
    return node < 0 ? nullptr : &quantized_.nodes[static_cast<std::size_t>(node)];
  }

  void add_side(const std::vector<ValueId>& own, const std::vector<ValueId>& theirs, bool is_input,
                std::vector<TensorPair>& pairs) const {
    for (std::size_t i = 0; i < std::min(own.size(), theirs.size()); ++i) {
      const bool there = own[i] != kNoValue && theirs[i] != kNoValue;
      if (there && plan::maybe_float(quantized_, own[i])) {
        pairs.push_back(pair_of(own[i], theirs[i], is_input));
      }
    }
  }

  TensorPair pair_of(ValueId id, ValueId original, bool is_input) const {
    const std::string& own = quantized_[id].name;
    TensorPair pair{.tensor = real_[original].name,
                    .is_input = is_input,
                    .float_name = real_[original].name,
                    .quantized_name = is_input ? own : analyze::seen_as(quantized_, own),
                    .is_weight = quantized_.constant(id) != nullptr};
    if (!is_input) {
      for (const NodeId reader : uses_.consumers[static_cast<std::size_t>(id)]) {
        const Node& cast = quantized_.nodes[static_cast<std::size_t>(reader)];
        if (cast.op_type != "QuantizeLinear" || cast.inputs[0] != id) continue;
        add_params(cast, cast.outputs[0], pair);
      }
      return pair;
    }
    const Node* cast = maker(id);
    if (cast == nullptr || cast->op_type != "DequantizeLinear") return pair;
    add_params(*cast, cast->inputs[0], pair);
    pair.is_weight = quantized_.constant(cast->inputs[0]) != nullptr;
    return pair;
  }

  /// Nothing where the scale is not a constant.
  void add_params(const Node& cast, ValueId integers, TensorPair& pair) const {
    const Tensor* scale = quantized_.constant(cast.input(1));
    if (scale == nullptr) return;
    pair.params.push_back({.integers = integers,
                           .scale = scale,
                           .zero = quantized_.constant(cast.input(2)),
                           .axis = cast.get_int("axis", 1)});
  }

  /// A product of integers: its helpers before and behind have no nodes in the float model.
  void add_product(const Node& node, const Node& original, std::vector<TensorPair>& pairs) const {
    if (const Node* maker_of = maker(node.inputs[0]);
        maker_of != nullptr && maker_of->op_type == "DynamicQuantizeLinear") {
      TensorPair pair{.tensor = real_[original.inputs[0]].name, .is_input = true};
      pair.float_name = pair.tensor;
      for (const ValueId id : maker_of->outputs) pair.parts.push_back(quantized_[id].name);
      pairs.push_back(std::move(pair));
    }
    if (const Tensor* weight = real_.constant(original.inputs[1])) {
      add_product_weight(node, *weight, real_[original.inputs[1]].name, pairs);
    }
    const auto add_named = [&](ValueId theirs, bool is_input) {
      const ValueId own = theirs == kNoValue ? kNoValue : quantized_.find(real_[theirs].name);
      if (own != kNoValue) pairs.push_back(pair_of(own, theirs, is_input));
    };
    for (std::size_t i = 2; i < original.inputs.size(); ++i) add_named(original.inputs[i], true);
    for (const ValueId output : original.outputs) add_named(output, false);
  }

  void add_product_weight(const Node& node, const Tensor& real, const std::string& name,
                          std::vector<TensorPair>& pairs) const {
    const TensorParams params{.integers = node.inputs[1],
                              .scale = product_scale(node),
                              .zero = quantized_.constant(node.input(3))};
    const Tensor* integers = quantized_.constant(params.integers);
    if (integers == nullptr || params.scale == nullptr || integers->size() != real.size()) return;
    TensorPair pair{.tensor = name, .is_input = true, .float_name = name, .is_weight = true};
    pair.params.push_back(params);
    std::vector<float> numbers = dequantized(quantized_, params);
    if (integers->shape() != real.shape()) numbers = transposed(numbers, integers->shape());
    pair.weight = Tensor::of<float>(real.shape(), std::span<const float>(numbers));
    pairs.push_back(std::move(pair));
  }

  /// A Gemm may hold its weight the other way round.
  static std::vector<float> transposed(const std::vector<float>& numbers, const Shape& shape) {
    const auto rows = static_cast<std::size_t>(shape.at(0));
    const auto columns = static_cast<std::size_t>(shape.at(1));
    std::vector<float> result(numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      result[i % columns * rows + i / columns] = numbers[i];
    }
    return result;
  }

  const Node* only_reader(const Node& node, std::string_view op) const {
    const NodeId reader = uses_.only_consumer(node.outputs[0]);
    if (reader < 0) return nullptr;
    const Node& found = quantized_.nodes[static_cast<std::size_t>(reader)];
    return found.op_type == op ? &found : nullptr;
  }

  /// The scale of the weight of an integer product: a Cast, and a Mul whose factor is that constant
  /// or the constant times the scale of the input.
  const Tensor* product_scale(const Node& product) const {
    const Node* cast = only_reader(product, "Cast");
    const Node* scaled = cast == nullptr ? nullptr : only_reader(*cast, "Mul");
    if (scaled == nullptr) return nullptr;
    const auto constant = [&](const Node& node) -> const Tensor* {
      const Tensor* first = quantized_.constant(node.inputs[0]);
      return first != nullptr ? first : quantized_.constant(node.inputs[1]);
    };
    if (const Tensor* scale = constant(*scaled)) return scale;
    for (const ValueId input : scaled->inputs) {
      const Node* factor = maker(input);
      if (factor != nullptr && factor->op_type == "Mul") return constant(*factor);
    }
    return nullptr;
  }

  const Graph& real_;
  const Graph& quantized_;
  Uses uses_;
  std::map<std::string, const Node*> originals_;
};

}  // namespace

std::vector<TensorPair> find_pairs(const Graph& real, const Graph& quantized) {
  const Pairing pairing(real, quantized);
  std::vector<TensorPair> pairs;
  for (const Node& node : quantized.nodes) {
    if (!is_cast(node)) pairing.add(node, pairs);
  }
  return pairs;
}

std::vector<float> dequantized(const Graph& graph, const TensorParams& params) {
  return quant::dequantize_linear(*graph.constant(params.integers), *params.scale, params.zero,
                                  params.axis);
}

}  // namespace quench
