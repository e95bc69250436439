// SPDX-License-Identifier: Apache-2.0
// The graph: values, and nodes in an order in which they can run. It speaks ONNX's vocabulary.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "quench/node.h"

namespace quench {

/// One dimension: a number, a symbol such as "batch", or unknown.
struct Dim {
  std::int64_t value = -1;
  std::string symbol;

  bool known() const noexcept { return value >= 0; }
  bool operator==(const Dim&) const = default;
};
std::string to_string(const Dim& dim);

/// What is known of a value before it is computed.
struct ValueType {
  enum class Kind { Unknown, Tensor, Other };
  Kind kind = Kind::Unknown;
  DType dtype = DType::Undefined;
  std::optional<std::vector<Dim>> shape;  ///< nothing: the rank is unknown
  /// Sequence, map, optional and sparse types, as the file had them.
  std::string foreign;

  static ValueType tensor(DType dtype, std::optional<std::vector<Dim>> shape = std::nullopt);
  static ValueType of(const Tensor& tensor);
  /// The shape as numbers, if every dimension is known.
  std::optional<Shape> static_shape() const;
  bool operator==(const ValueType&) const = default;
};
/// "float32[batch,3,224,224]".
std::string to_string(const ValueType& type);

/// How a constant lies in the file it came from, so that it is written back the same way.
enum class ConstantForm { Raw, Typed, External };

/// An edge: a graph input, a constant, or the output of a node.
struct Value {
  std::string name;
  ValueType type;
  std::optional<Tensor> constant;
  ConstantForm form = ConstantForm::Raw;
  bool declared = false;         ///< its type stood in the file (value_info), not only inferred
  bool captured = false;         ///< it lives in an outer graph and has the same name there
  std::string foreign;           ///< parts of its declaration that only the format understands
  std::string constant_foreign;  ///< likewise of its constant
};

/// Nodes, in an order in which they can run, and the values between them.
class Graph {
 public:
  std::string name;
  std::string foreign;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::vector<Node> nodes;

  const std::vector<Value>& values() const noexcept { return values_; }
  const Value& operator[](ValueId id) const { return values_[static_cast<std::size_t>(id)]; }
  /// For everything but the name, which `rename` changes.
  Value& operator[](ValueId id) { return values_[static_cast<std::size_t>(id)]; }

  /// Adds a value; throws when the name is taken or empty.
  ValueId add_value(Value value);
  /// Adds a value called `stem`, or `stem_1` and so on when that is taken.
  ValueId add_fresh(std::string_view stem, ValueType type = {});
  ValueId add_constant(std::string_view stem, Tensor tensor);
  /// Adds a node at the end; its outputs are new values called `outputs`.
  Node& add_node(std::string op_type, std::vector<ValueId> node_inputs,
                 const std::vector<std::string>& node_outputs);
  void rename(ValueId id, std::string new_name);
  /// The id of a name, or kNoValue.
  ValueId find(std::string_view value_name) const;
  /// The constant behind a value, or null.
  const Tensor* constant(ValueId id) const noexcept;

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };

  std::vector<Value> values_;
  std::unordered_map<std::string, ValueId, Hash, std::equal_to<>> index_;
};

/// Who makes and who reads each value; made afresh after a change.
struct Uses {
  explicit Uses(const Graph& graph);

  std::vector<NodeId> producer;  ///< by value; -1: none
  std::vector<std::vector<NodeId>>
      consumers;                ///< by value; a node that reads it twice is there twice
  std::vector<bool> is_output;  ///< by value: it leaves the graph
  /// The one node that reads the value, or -1 when there are several or it leaves the graph.
  NodeId only_consumer(ValueId id) const;
};

/// How messages name a node: its name, or its type and first output.
std::string label(const Graph& graph, const Node& node);
/// Removes nodes whose flag is set, and values that nothing refers to. Ids change.
void compact(Graph& graph, const std::vector<bool>& dead_nodes);
/// Makes every reader of `from`, the graph's outputs included, read `to`.
void replace_uses(Graph& graph, ValueId from, ValueId to);
/// The graphs inside a node's attributes.
std::vector<const Graph*> subgraphs(const Node& node);
/// Names of outer values that the graphs inside a node read, at any depth.
std::vector<std::string> captured_names(const Node& node);
/// Calls `visit` for the graph and, outer first, every graph inside its attributes.
void for_each_graph(const Graph& graph, const std::function<void(const Graph&)>& visit);

}  // namespace quench
