// SPDX-License-Identifier: Apache-2.0
// One graph being rewritten: finds what surrounds a node, replaces nodes, removes them at the end.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>

#include "passes/pass.h"

namespace quench::passes {

inline constexpr NodeId kNoNode = -1;

/// Keeps makers and readers of values right after every step. Readers of constants are not
/// followed: constants that nothing reads any more disappear in `finish`.
class Rewriter {
 public:
  Rewriter(Graph& graph, const Model& model, const PassOptions& options);

  const Graph& graph() const noexcept { return graph_; }
  std::int64_t opset() const noexcept { return opset_; }
  NodeId num_nodes() const noexcept { return static_cast<NodeId>(graph_.nodes.size()); }
  bool alive(NodeId id) const { return id != kNoNode && !dead_[static_cast<std::size_t>(id)]; }
  const Node& node(NodeId id) const { return graph_.nodes[static_cast<std::size_t>(id)]; }

  /// The first output of a node, or kNoValue.
  ValueId result(NodeId id) const;
  /// The node if it is alive, of ONNX's own domain, called `op` and with one output; else null.
  const Node* as(NodeId id, std::string_view op) const;
  /// The node that makes a value, or kNoNode.
  NodeId maker(ValueId id) const;
  /// `as` of the node that makes a value.
  const Node* maker_as(ValueId id, std::string_view op) const;
  /// The one node that reads the value, if the value may disappear with it; else kNoNode.
  NodeId next(ValueId id) const;
  /// Nothing but the listed nodes reads the value, and it may disappear.
  bool private_to(ValueId id, std::span<const NodeId> nodes) const;
  /// It is a graph output, asked for by name, or kNoValue.
  bool must_stay(ValueId id) const;
  /// It need not stay, and no graph inside a node reads it by its name.
  bool may_rename(ValueId id) const;
  /// A node's output past the first that somebody wants.
  bool has_extra_outputs(const Node& node) const;

  /// The constant behind a value; null for one that the caller may override as a graph input.
  const Tensor* constant(ValueId id) const;
  /// The number in a constant of one element and at most one dimension.
  std::optional<double> scalar(ValueId id) const;

  /// A new constant for the only reader of `old`, with its name where nobody else wants that.
  ValueId replace_constant(ValueId old, Tensor tensor, std::string_view stem);
  ValueId add_constant(std::string_view stem, Tensor tensor);
  /// A value that a node put in by `replace` will make.
  ValueId add_value(std::string_view stem, ValueType type);
  /// Puts `fused` at the place of another node, and removes the `dead` nodes.
  void replace(NodeId place, Node fused, std::span<const NodeId> dead = {});
  /// Removes a node whose outputs nobody reads.
  void remove(NodeId id);
  /// Nothing reads the value and it may disappear.
  bool unread(ValueId id) const;
  /// Removes a node; what read or made `gone` reads or makes `stays` instead.
  void merge(ValueId gone, ValueId stays, NodeId removed);
  /// Removes dead nodes and values; the rewriter is of no use afterwards. Returns the changes.
  std::size_t finish();

 private:
  void unlink(NodeId id);

  Graph& graph_;
  const PassOptions& options_;
  std::int64_t opset_;
  Uses uses_;
  std::vector<bool> dead_;
  std::vector<bool> overridable_;  ///< by value: a constant that is also a graph input
  std::size_t changes_ = 0;
};

/// Calls `rewrite` with the model's graph and each graph inside its nodes, inner ones first.
PassReport rewrite_graphs(Model& model, const PassOptions& options,
                          const std::function<void(Rewriter&)>& rewrite);
/// The graphs inside a node's attributes, to be changed.
std::vector<Graph*> mutable_subgraphs(Node& node);
/// Elements as doubles, whatever float type they have.
std::vector<double> to_doubles(const Tensor& tensor);
/// Float32, float16, bfloat16 or float64.
bool is_real(DType dtype) noexcept;

}  // namespace quench::passes
