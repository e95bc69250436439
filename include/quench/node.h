// SPDX-License-Identifier: Apache-2.0
// A node of the graph and its attributes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "quench/tensor.h"

namespace quench {

class Graph;

using ValueId = std::int32_t;
using NodeId = std::int32_t;
/// An optional input or output that is left out.
inline constexpr ValueId kNoValue = -1;

/// A graph held by value inside an attribute.
class GraphBox {
 public:
  explicit GraphBox(Graph graph);
  GraphBox(const GraphBox& other);
  GraphBox(GraphBox&&) noexcept;
  GraphBox& operator=(const GraphBox& other);
  GraphBox& operator=(GraphBox&&) noexcept;
  ~GraphBox();
  Graph& operator*() noexcept { return *graph_; }
  const Graph& operator*() const noexcept { return *graph_; }
  Graph* operator->() noexcept { return graph_.get(); }
  const Graph* operator->() const noexcept { return graph_.get(); }

 private:
  std::unique_ptr<Graph> graph_;
};

/// A named constant of a node. monostate: `foreign` holds it as the format wrote it.
struct Attribute {
  using Data = std::variant<std::monostate, std::int64_t, float, std::string, Tensor, GraphBox,
                            std::vector<std::int64_t>, std::vector<float>, std::vector<std::string>,
                            std::vector<Tensor>, std::vector<GraphBox>>;
  std::string name;
  Data data;
  std::string reference;  ///< inside a function: the caller's attribute that stands here
  std::string foreign;
};

/// An operation with ordered inputs and outputs.
struct Node {
  std::string name;
  std::string op_type;
  std::string domain;  ///< "" is ONNX's own
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::vector<Attribute> attributes;
  std::string foreign;

  const Attribute* find(std::string_view attribute) const noexcept;
  /// The attribute's value, or nothing when it is absent or of another type.
  template <typename T>
  const T* get(std::string_view attribute) const noexcept {
    const Attribute* found = find(attribute);
    return found == nullptr ? nullptr : std::get_if<T>(&found->data);
  }
  std::int64_t get_int(std::string_view attribute, std::int64_t otherwise) const noexcept;
  float get_float(std::string_view attribute, float otherwise) const noexcept;
  std::string get_string(std::string_view attribute, std::string_view otherwise) const;
  std::vector<std::int64_t> get_ints(std::string_view attribute) const;
  void set(std::string_view attribute, Attribute::Data data);
  void erase(std::string_view attribute);
  /// The i-th input, or kNoValue when there are fewer.
  ValueId input(std::size_t index) const noexcept;
};

}  // namespace quench
