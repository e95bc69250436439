// SPDX-License-Identifier: Apache-2.0
// A Paddle program as both of its file formats hold it: blocks of variables and operators.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "quench/dtype.h"

namespace quench::paddle {

/// The number of a block inside an operator.
struct BlockIndex {
  std::int64_t index = 0;
};

/// An attribute. Numbers have one type of integers and one of floats; lists of bool are integers.
/// monostate: of a type that is not known, which is an error only where the attribute is read.
struct Attr {
  using Data =
      std::variant<std::monostate, bool, std::int64_t, double, std::string, BlockIndex,
                   std::vector<std::int64_t>, std::vector<double>, std::vector<std::string>>;
  std::string name;
  Data data;
};

/// The variables that an operator takes or makes under one name, such as "X".
struct Argument {
  std::string name;
  std::vector<std::string> variables;
};

struct OpItem {
  std::string type;  ///< the name in programs, for PIR's operators too
  std::vector<Argument> inputs;
  std::vector<Argument> outputs;
  std::vector<Attr> attrs;
  int index = 0;  ///< among the operators of its block in the file

  const Attr* find(std::string_view attribute) const noexcept;
};

struct VarItem {
  std::string name;
  DType dtype = DType::Undefined;  ///< of tensors; may be float32 for weights that are integers
  std::optional<Shape> shape;      ///< -1: open
  bool parameter = false;          ///< it has a record in the file of parameters
};

struct Block {
  int index = 0;    ///< in the file
  int parent = -1;  ///< its position in `blocks`; -1: none
  std::vector<VarItem> vars;
  std::vector<OpItem> ops;
  std::vector<std::string> arguments;  ///< PIR: variables that its operator gives it
  std::vector<std::string> results;    ///< PIR: variables that it gives its operator
};

struct Program {
  std::vector<Block> blocks;  ///< the first is the outermost
  std::string version;        ///< of Paddle, or ""
};

/// The program of a serialized ProgramDesc.
Program read_desc(std::span<const std::byte> file);
/// What variables the values of PIR's outermost block became, by their numbers.
using PirNames = std::map<std::int64_t, std::vector<std::string>>;
/// The program of PIR's JSON.
Program read_pir(std::span<const std::byte> file, PirNames* names = nullptr);
/// Turns what older Paddle writes of quantisation into quantize_linear and dequantize_linear.
void unify_quantization(Program& program);
/// Whether the bytes are PIR's JSON. Cheap; never throws.
bool is_pir(std::span<const std::byte> file) noexcept;

}  // namespace quench::paddle
