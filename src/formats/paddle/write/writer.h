// SPDX-License-Identifier: Apache-2.0
// A Paddle program under construction: variables, operators and parameters.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "formats/paddle/framework.pb.h"
#include "quench/model.h"

namespace quench::paddle::write {

using Names = std::vector<std::string>;
using Ints = std::vector<std::int32_t>;
using AttrValue = std::variant<bool, std::int32_t, std::int64_t, float, std::string, Ints,
                               std::vector<float>, std::vector<std::int64_t>>;

class Originals;

/// What graphs inside nodes become: a program's blocks write variables of the block around them,
/// PIR's regions give values to their operator.
enum class Inner { Blocks, Regions };
/// Operators that only regions have, while they are written: what a region takes and gives.
inline constexpr const char* kArguments = "arguments";
inline constexpr const char* kYield = "yield";

/// An operator description being filled in.
class Op {
 public:
  explicit Op(OpDesc& desc) : desc_(desc) {}
  /// A new one.
  static Op named(OpDesc& desc, std::string_view type);
  Op& in(const char* argument, const std::string& name) { return in(argument, Names{name}); }
  Op& in(const char* argument, const Names& names);
  Op& out(const char* argument, const std::string& name) { return out(argument, Names{name}); }
  Op& out(const char* argument, const Names& names);
  Op& set(const char* name, const AttrValue& value);
  /// The block inside it.
  Op& set_block(const char* name, std::int32_t index);

 private:
  OpDesc& desc_;
};

/// A block of a program. Names of values stay what they are in the graph.
class Writer {
 public:
  explicit Writer(const Graph& graph, Inner inner = Inner::Blocks);
  /// Of a graph inside a node: a block inside that of `outer`.
  Writer(const Graph& graph, Writer& outer);

  const Graph& graph() const noexcept { return graph_; }
  Inner inner() const noexcept { return inner_; }
  /// The variable of a value; a constant becomes a parameter when it is first asked for.
  std::string variable(ValueId value);
  /// The value's variable has another name from now on; it must not have been asked for.
  void call(ValueId value, const std::string& name);
  /// A constant that an operator makes: no parameter.
  void make(ValueId constant);
  /// The operator that makes a variable says how far its scale reaches.
  void note_reach(const std::string& variable, float reach);
  /// The value is a variable of an outer block, or one that there is.
  void alias(ValueId value, const std::string& outer);
  bool taken(const std::string& name) const;
  /// A parameter that is made from a constant, once, in another form than the constant's.
  std::string derived(ValueId constant, std::string_view stem, Tensor tensor);
  /// A parameter as the original had it; several operators may have it.
  std::string restored(const std::string& name, const Tensor& tensor);
  /// A new parameter, called `stem` where that is free.
  std::string parameter(std::string_view stem, Tensor tensor);
  /// A new variable for what `like` is the type of.
  std::string temporary(std::string_view stem, const ValueType& like);
  /// A new variable that holds what an operator with a block inside needs.
  std::string scopes(std::string_view stem);
  Op op(const char* type);
  std::int32_t block() const noexcept { return block_; }
  /// Declares the variables of an inner block; gives those of outer blocks that it reads.
  Names close();
  /// An operator of another block, with other names for what it reads and makes. Variables that
  /// only it has are declared as they are there.
  void copy(const BlockDesc& block, const OpDesc& op,
            const std::map<std::string, std::string>& inputs,
            const std::map<std::string, std::string>& outputs);
  /// An operator of another program as it stands, with the blocks inside it.
  void copy(const ProgramDesc& program, const OpDesc& op);

  /// The block's inputs and outputs: feed and fetch operators, as `originals` has them where it
  /// does.
  void feed(const Originals& originals);
  void fetch(const Originals& originals);
  /// Declares every variable, as `originals` has them where it does; call it last.
  ProgramDesc take(const Originals& originals);
  const std::map<std::string, Tensor>& parameters() const noexcept { return root().parameters_; }

 private:
  Writer& root() { return outer_ == nullptr ? *this : outer_->root(); }
  const Writer& root() const { return outer_ == nullptr ? *this : outer_->root(); }
  BlockDesc& desc() { return *root().program_.mutable_blocks(block_); }
  void name_values();
  /// Of a value that this block or one around it has.
  std::string outer_variable(const std::string& name);
  void declare(BlockDesc& block, const std::string& name,
               const std::map<std::string, VarDesc>& known) const;
  void copy_blocks(const ProgramDesc& program, OpDesc& op, std::int32_t parent);
  std::string free_name(std::string_view stem) const;
  void port(const OpDesc* original, const char* type, const std::string& name, std::int32_t column);

  const Graph& graph_;
  Inner inner_;
  Writer* outer_ = nullptr;  ///< null: this writes the first block
  std::int32_t block_ = 0;
  ProgramDesc program_;  ///< of the outermost
  std::map<ValueId, std::string> names_;
  std::map<ValueId, std::string> derived_;    ///< by constant
  std::map<std::string, ValueType> types_;    ///< of all variables but parameters
  std::map<std::string, VarDesc> copied_;     ///< declarations that came with operators
  std::map<std::string, Tensor> parameters_;  ///< of the outermost
};

/// One node, as a row of the table of operators sees it.
struct NodeWriter {
  Writer& writer;
  const Node& node;
  std::int64_t opset;  ///< of the model's ONNX operators

  const Graph& graph() const noexcept { return writer.graph(); }
  bool has(std::size_t input) const { return node.input(input) != kNoValue; }
  std::string in(std::size_t input = 0) const { return writer.variable(node.input(input)); }
  std::string out(std::size_t output = 0) const { return writer.variable(node.outputs[output]); }
  const Tensor* constant(std::size_t input) const { return graph().constant(node.input(input)); }
  const ValueType& type(std::size_t input) const { return graph()[node.input(input)].type; }
  /// Of an input; refuses where it is not known.
  std::int64_t rank(std::size_t input) const;
  /// A variable between two operators, of the type of the first output.
  std::string between(std::string_view suffix) const;
  Op op(const char* paddle_type) const { return writer.op(paddle_type); }
  /// `op` from X to Out.
  Op unary(const char* paddle_type) const {
    return op(paddle_type).in("X", in()).out("Out", out());
  }
  /// The integers of an attribute or, in later versions of the operator, of a constant input.
  std::optional<std::vector<std::int64_t>> ints(const char* attribute, std::size_t input) const;
  /// The number in a constant input of one element.
  float number(std::size_t input) const;
  [[noreturn]] void refuse(std::string_view reason) const;
};

/// The variables that the operators of a block read and make.
std::set<std::string> variables_of(const BlockDesc& block);
bool has_block(const OpDesc& op);
/// Those of an operator's inner blocks that are declared outside of them.
std::set<std::string> outer_variables(const ProgramDesc& program, const OpDesc& op);

Ints narrow(const std::vector<std::int64_t>& values);

/// Writes the nodes of a graph inside a node into its block.
void write_nodes(Writer& writer, std::int64_t opset);

/// Writes one kind of node.
struct WriteRow {
  std::string_view op_type;
  void (*write)(const NodeWriter& node);
};

/// Tables of rows, one a family.
#define QUENCH_PADDLE_ROWS(family) std::vector<WriteRow> family##_rows();
#include "formats/paddle/write/families.inc"
#undef QUENCH_PADDLE_ROWS

/// The row of an operator of ONNX's own domain; null: Paddle has no counterpart.
const WriteRow* write_row(std::string_view op_type);

/// Gives the values of quantised models the names that Paddle's own tools give them: a weight keeps
/// its name, an activation X becomes X.quantized and X.quantized.dequantized.
void name_as_paddle(Writer& writer);

/// What Paddle has another form for: weights that are transposed by their layer, integer biases,
/// integers that are dequantised for each of their readers. Constant nodes that make one of `kept`
/// stay.
Model legalize(Model model, const std::set<std::string>& kept);
/// The same of a graph inside a node.
void legalize_inner(Graph& graph);

/// A program and its parameters, of float or quantised models.
struct Written {
  ProgramDesc program;
  std::map<std::string, Tensor> parameters;
};
/// The program that a model was read from; empty where it is from elsewhere.
ProgramDesc original_program(const Model& model);
/// Operators of `original` that nobody touched are taken from it. Throws Error(Unsupported) that
/// lists all operators for which Paddle has no counterpart.
Written write_program(const Model& model, ProgramDesc original, Inner inner = Inner::Blocks);

/// Rewrites quantize_linear and dequantize_linear as the operators that stood for them before.
void to_old_form(Written& written);

}  // namespace quench::paddle::write
