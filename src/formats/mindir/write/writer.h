// SPDX-License-Identifier: Apache-2.0
// From a graph to a MindIR file, in the form that MindSpore's own export has.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "formats/graph_maker.h"
#include "formats/mindir/entry.h"
#include "quench/model.h"

namespace quench::mindir::write {

/// Attributes of a primitive.
using Attributes = std::vector<wire::Attribute>;

wire::Attribute whole(std::string_view name, std::int64_t number);
wire::Attribute truth(std::string_view name, bool flag);
wire::Attribute real(std::string_view name, double number);
wire::Attribute text(std::string_view name, std::string_view letters);
wire::Attribute tuple(std::string_view name, const Ints& numbers);

class Writer {
 public:
  explicit Writer(const Model& model);
  wire::ModelData run();

  const Graph& graph() const noexcept { return graph_; }
  const Tensor* constant(ValueId id) const {
    return id == kNoValue ? nullptr : graph_.constant(id);
  }
  /// The shape of a value, -1 for open sizes; an unknown rank is an error.
  Shape shape(ValueId id) const;
  /// Likewise, where every size must be known.
  Shape known_shape(ValueId id) const;
  std::int64_t rank(ValueId id) const { return std::ssize(shape(id)); }

  /// The name of a value in the file; constants become parameters or constant nodes.
  std::string name(ValueId id);
  /// Arguments that stand behind the tensors.
  std::string argument(wire::Attribute value);
  std::string argument(std::int64_t number) { return argument(whole("value", number)); }
  std::string argument(bool flag) { return argument(truth("value", flag)); }
  std::string argument(double number) { return argument(real("value", number)); }
  std::string argument(const Ints& numbers) { return argument(tuple("value", numbers)); }
  std::string nothing();
  /// A constant tensor beside the graph's own.
  std::string tensor(const Tensor& data);

  /// A node of a primitive without attributes, which takes its arguments as inputs.
  void add(std::string_view op, const std::vector<std::string>& inputs, ValueId result);
  /// Likewise of one with attributes.
  void add(std::string_view op, const Attributes& attributes,
           const std::vector<std::string>& inputs, ValueId result);
  /// A node whose result another one of the same operator reads, or that gives a tuple.
  std::string between(std::string_view op, const Attributes& attributes,
                      const std::vector<std::string>& inputs, DType dtype, const Shape& shape);
  std::string between(std::string_view op, const std::vector<std::string>& inputs, DType dtype,
                      const Shape& shape) {
    return between(op, {}, inputs, dtype, shape);
  }
  std::string make_tuple(const std::vector<std::string>& inputs);
  void take(const std::string& tuple, std::int64_t index, ValueId result);
  /// A value is another name of what is there.
  void alias(ValueId id, const std::string& known) { names_[id] = known; }

 private:
  std::string reference(std::string_view op, const Attributes& attributes, bool old);
  wire::NodeData& push(const std::string& reference, const std::vector<std::string>& inputs,
                       const std::string& output);
  std::string fresh(std::string_view stem);
  void add_inputs();
  void add_outputs();
  void write_node(const Node& node);

  const Graph& graph_;
  wire::ModelData file_;
  std::map<ValueId, std::string> names_;
  std::map<std::string, std::string, std::less<>> references_;
  int count_ = 0;
};

/// An operator of ONNX's that can be written.
struct WriteRow {
  std::string_view op_type;
  void (*write)(Writer& writer, const Node& node);
  std::string_view as = {};  ///< MindIR's name, where the row is one of many
};
const WriteRow* find_write_row(std::string_view op_type);
std::span<const WriteRow> layer_rows();
std::span<const WriteRow> function_rows();
std::span<const WriteRow> move_rows();

/// The pads of a Conv or a pool, whatever way the node says them.
Ints pads_of(const Writer& writer, const Node& node, const Ints& kernel);

}  // namespace quench::mindir::write
