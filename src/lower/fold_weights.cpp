// SPDX-License-Identifier: Apache-2.0
// Finds what depends on constants alone, and has the engine compute it.
#include "lower/fold_weights.h"

#include <algorithm>
#include <array>
#include <set>

#include "quench/session.h"

namespace quench {
namespace {

/// What a result may be larger than the constants it comes from.
constexpr std::uint64_t kSlack = 4096;

/// Nodes that give something else in every run, and those whose integers are the point of them.
bool may_fold(const Node& node) {
  static constexpr std::array<std::string_view, 9> kNever = {
      "RandomNormalLike", "RandomUniformLike", "Bernoulli",     "Multinomial", "Dropout",
      "QuantizeLinear",   "DequantizeLinear",  "MatMulInteger", "ConvInteger"};
  return node.domain.empty() && !node.inputs.empty() && subgraphs(node).empty() &&
         std::ranges::find(kNever, node.op_type) == kNever.end();
}

class Folder {
 public:
  Folder(Model& model, SharedTables tables)
      : model_(model),
        graph_(model.graph),
        tables_(tables),
        uses_(model.graph),
        known_(model.graph.values().size(), false),
        constants_(model.graph.values().size()),
        folds_(model.graph.nodes.size(), false) {}

  void run() {
    find_known();
    std::vector<ValueId> wanted;
    for (std::size_t i = 0; i < known_.size(); ++i) {
      if (is_wanted(static_cast<ValueId>(i))) wanted.push_back(static_cast<ValueId>(i));
    }
    if (wanted.empty()) return;
    compute(wanted);
    drop_unread();
    infer_types(model_);
  }

 private:
  const Tensor* constant(ValueId id) const { return graph_.constant(id); }

  /// Marks every value that depends on constants alone.
  void find_known() {
    for (std::size_t i = 0; i < known_.size(); ++i) {
      if (constant(static_cast<ValueId>(i)) == nullptr) continue;
      known_[i] = true;
      constants_[i].insert(static_cast<ValueId>(i));
    }
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      folds_[i] =
          may_fold(node) && !keeps_table(node) && std::ranges::all_of(node.inputs, [&](ValueId id) {
            return id == kNoValue || known_[static_cast<std::size_t>(id)];
          });
      if (folds_[i]) mark_outputs(node);
    }
  }

  void mark_outputs(const Node& node) {
    std::set<ValueId> from;
    for (const ValueId input : node.inputs) {
      if (input == kNoValue) continue;
      const auto& its = constants_[static_cast<std::size_t>(input)];
      from.insert(its.begin(), its.end());
    }
    for (const ValueId output : node.outputs) {
      if (output == kNoValue) continue;
      known_[static_cast<std::size_t>(output)] = true;
      constants_[static_cast<std::size_t>(output)] = from;
    }
  }

  /// A second copy of a table is as large as the table.
  bool keeps_table(const Node& node) const {
    if (tables_ != SharedTables::Kept || node.op_type != "Transpose") return false;
    return constant(node.inputs[0]) != nullptr &&
           uses_.consumers[static_cast<std::size_t>(node.inputs[0])].size() > 1;
  }

  bool is_wanted(ValueId id) const {
    const auto index = static_cast<std::size_t>(id);
    if (!known_[index] || constant(id) != nullptr || uses_.is_output[index]) return false;
    const ValueType& type = graph_[id].type;
    const auto shape = type.static_shape();
    const auto count = shape ? num_elements(*shape) : std::nullopt;
    if (!count || type.dtype == DType::Undefined || !info(type.dtype).is_float) return false;
    std::uint64_t from = kSlack;
    for (const ValueId each : constants_[index]) from += constant(each)->num_bytes();
    const auto bytes = num_bytes(type.dtype, *count);
    if (!bytes || *bytes > from) return false;
    return std::ranges::any_of(uses_.consumers[index], [&](NodeId reader) {
      return !folds_[static_cast<std::size_t>(reader)];
    });
  }

  /// The nodes that `wanted` depends on, as a model without inputs.
  Model without_inputs(const std::vector<ValueId>& wanted) const {
    std::set<ValueId> needed(wanted.begin(), wanted.end());
    std::vector<const Node*> nodes;
    for (auto node = graph_.nodes.rbegin(); node != graph_.nodes.rend(); ++node) {
      const bool makes =
          std::ranges::any_of(node->outputs, [&](ValueId id) { return needed.contains(id); });
      if (!makes) continue;
      nodes.push_back(&*node);
      needed.insert(node->inputs.begin(), node->inputs.end());
    }
    Model part;
    part.opsets = model_.opsets;
    const auto place = [&](ValueId id) {
      if (id == kNoValue) return id;
      const ValueId there = part.graph.find(graph_[id].name);
      return there != kNoValue ? there : part.graph.add_value(graph_[id]);
    };
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
      Node copy = **node;
      for (auto* ids : {&copy.inputs, &copy.outputs}) {
        std::ranges::transform(*ids, ids->begin(), place);
      }
      part.graph.nodes.push_back(std::move(copy));
    }
    for (const ValueId id : wanted) part.graph.outputs.push_back(place(id));
    return part;
  }

  void compute(const std::vector<ValueId>& wanted) {
    Session session(without_inputs(wanted), {.reference = true});
    TensorMap results = session.run({});
    for (const ValueId id : wanted) {
      Value& value = graph_[id];
      value.constant = std::move(results.at(value.name));
      value.type = ValueType::of(*value.constant);
      const bool external = std::ranges::any_of(
          constants_[static_cast<std::size_t>(id)],
          [&](ValueId from) { return graph_[from].form == ConstantForm::External; });
      if (external) value.form = ConstantForm::External;
      const NodeId maker = uses_.producer[static_cast<std::size_t>(id)];
      std::ranges::replace(graph_.nodes[static_cast<std::size_t>(maker)].outputs, id, kNoValue);
    }
  }

  /// Nodes of which nothing is read any more, the last first.
  void drop_unread() {
    std::vector<bool> dead(graph_.nodes.size(), false);
    std::vector<std::size_t> readers(known_.size(), 0);
    for (std::size_t i = 0; i < readers.size(); ++i) readers[i] = uses_.consumers[i].size();
    for (std::size_t i = graph_.nodes.size(); i-- > 0;) {
      const Node& node = graph_.nodes[i];
      const bool unread = std::ranges::all_of(node.outputs, [&](ValueId id) {
        const auto index = static_cast<std::size_t>(id);
        return id == kNoValue || (readers[index] == 0 && !uses_.is_output[index]);
      });
      dead[i] = unread && folds_[i];
      if (!dead[i]) continue;
      for (const ValueId id : node.inputs) {
        if (id != kNoValue) --readers[static_cast<std::size_t>(id)];
      }
    }
    compact(graph_, dead);
  }

  Model& model_;
  Graph& graph_;
  SharedTables tables_;
  Uses uses_;                                 ///< of the graph as it was
  std::vector<bool> known_;                   ///< by value: it depends on constants alone
  std::vector<std::set<ValueId>> constants_;  ///< by value: which those are
  std::vector<bool> folds_;                   ///< by node: it reads nothing else
};

}  // namespace

void fold_weights(Model& model, SharedTables tables) { Folder(model, tables).run(); }

}  // namespace quench
