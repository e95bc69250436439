// SPDX-License-Identifier: Apache-2.0
// What the steps of lift_opset share: one node being lifted, and the nodes around it.
#pragma once

#include <span>

#include "quench/model.h"

namespace quench::lower {

/// One graph whose nodes are lifted one after another.
class Lifter {
 public:
  Lifter(Graph& graph, std::int64_t from, std::int64_t to) : graph_(graph), from_(from), to_(to) {}

  void run();

  Graph& graph() noexcept { return graph_; }
  /// Turns an attribute into the input `index`; nothing when the node does not have it.
  void ints_to_input(Node& node, std::string_view attribute, std::size_t index);
  void set_input(Node& node, std::size_t index, Tensor tensor, std::string_view what);
  /// The rank of a value, or -1.
  std::int64_t rank(ValueId value) const;
  /// The element type of a value, float32 where it is not known.
  DType dtype(ValueId value) const;
  /// A node that runs before or after the one being lifted; returns its output.
  ValueId before(Node node, std::string_view stem);
  void after(Node node) { after_.push_back(std::move(node)); }
  /// Something reads this output.
  bool is_used(ValueId value) const;
  [[noreturn]] void refuse(const Node& node, std::string_view reason) const;

 private:
  void lift(Node& node);

  Graph& graph_;
  std::int64_t from_;
  std::int64_t to_;
  std::vector<Node> done_;
  std::vector<Node> after_;
  std::vector<bool> used_;
};

/// A change in an operator's form or meaning.
struct LiftStep {
  std::string_view op_type;
  std::int64_t version;  ///< the first that has the new form
  void (*apply)(Lifter& lifter, Node& node);
};

/// Every change, in the order of versions.
std::span<const LiftStep> lift_steps();

}  // namespace quench::lower
