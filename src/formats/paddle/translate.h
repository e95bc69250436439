// SPDX-License-Identifier: Apache-2.0
// From a program and its parameters to a graph in ONNX's vocabulary.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "formats/paddle/origin.h"
#include "formats/paddle/program.h"
#include "quench/model.h"

namespace quench::paddle {

/// The parameters of a program, in the order of its variables.
std::vector<const VarItem*> parameters_of(const Program& program);

/// Operators of the outermost block that lead to no output go, as where Paddle exports a network
/// without them: a metric that nobody fetches.
void drop_unread(Program& program);

/// Throws Error(Unsupported) that lists all operators which are not known, and Error(BadModel) for
/// names that exist twice: what can be told before parameters are read.
void expect_readable(const Program& program);

/// The model that the program is; `expect_readable` has passed. A variable that is written again is
/// a value `name@1` and so on; a node is called after its operator and its first output,
/// "conv2d/conv2d_0.tmp_0". Parameters keep their names, and may have another shape of the same
/// elements.
Model translate(const Program& program, const std::map<std::string, Tensor>& parameters);

/// A graph that is being made, and what its variables are now.
struct Scope {
  Graph* graph = nullptr;
  std::map<std::string, ValueId, std::less<>> values;
  Scope* outer = nullptr;
};

/// The state of a translation, for operators.
class Translator {
 public:
  Translator(const Program& program, int opset) : program_(program), opset_(opset) {}

  int opset() const noexcept { return opset_; }
  Graph& graph() noexcept { return *scope_->graph; }
  Scope& scope() noexcept { return *scope_; }
  const Program& program() const noexcept { return program_; }

  /// What a variable is now, here or around; kNoValue: nothing yet.
  ValueId find(std::string_view variable);
  /// As `find`; an error where it is nothing.
  ValueId lookup(std::string_view variable);
  /// Makes a new value what the variable is.
  void define(const std::string& variable, ValueId value);
  /// Adds a value under a name that no graph of the model has.
  ValueId add(std::string_view stem, ValueType type = {});
  void rename(ValueId value, std::string_view stem);
  ValueId add_constant(std::string_view stem, Tensor tensor);
  /// What blocks say of a variable.
  const VarItem* variable(const Block& block, std::string_view name) const;
  /// How often operators read a variable.
  int num_readers(std::string_view name) const;

  /// The variables behind values that inner graphs read, by the names of values.
  const std::map<std::string, std::string>& captured() const noexcept { return captured_; }

  /// Translates the operators of a block into the graph of the scope that is entered.
  void run_block(const Block& block);
  /// The block of an operator's attribute, which must lie inside `block` and be used once.
  const Block& inner_block(const Block& block, std::int64_t index);

 private:
  friend class Entered;
  std::string unique(std::string_view stem);

  const Program& program_;
  int opset_;
  Scope* scope_ = nullptr;
  std::set<std::string, std::less<>> names_;
  std::set<std::int64_t> blocks_used_;
  std::map<std::string, std::string> captured_;
  mutable std::map<std::string, int, std::less<>> readers_;
  mutable std::map<const Block*, std::map<std::string_view, const VarItem*>> vars_;
};

/// Makes a scope the one that nodes are added to, as long as this lives.
class Entered {
 public:
  Entered(Translator& translator, Scope& scope) : translator_(translator) {
    scope.outer = translator.scope_;
    translator.scope_ = &scope;
  }
  ~Entered() { translator_.scope_ = translator_.scope_->outer; }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

 private:
  Translator& translator_;
};

}  // namespace quench::paddle
