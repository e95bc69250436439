// SPDX-License-Identifier: Apache-2.0
// What inference knows of the values of one graph while it walks its nodes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ops/symbolic.h"
#include "quench/model.h"

namespace quench::ops {

/// What is known of a value besides its type.
struct Fact {
  std::optional<SymInts> ints;
  bool looked = false;  ///< `ints` has been tried to be read from the constant
  const Tensor* constant = nullptr;
};

/// What all graphs of one inference share.
struct Inference {
  std::unordered_map<std::string_view, std::vector<const Function*>> functions;  ///< by name
  /// Nodes that may still be visited inside bodies and functions. Functions that call functions
  /// twice would otherwise take exponential time.
  std::int64_t body_budget = 200'000;
  std::vector<std::string> notes;  ///< declarations that were not believed
};

/// One graph during inference.
struct Scope {
  Scope(Inference& shared, Graph& of, const std::map<std::string, std::int64_t>& versions);
  /// A graph inside another, or a function's body, which sees nothing outside.
  Scope(const Scope& around, Graph& of, const std::map<std::string, std::int64_t>& versions,
        Scope* visible);

  Inference& inference;
  Graph& graph;
  const std::map<std::string, std::int64_t>& opsets;
  Scope* outer = nullptr;
  int depth = 0;
  bool lenient = false;         ///< it may never run: a node that makes no sense is no error
  std::vector<Fact> facts;      ///< by value
  std::vector<bool> is_output;  ///< by value
  std::vector<bool> from_file;  ///< by value: the file says its type

  Fact& fact(ValueId id) { return facts[static_cast<std::size_t>(id)]; }
};

/// Infers every node of the scope's graph.
void infer_scope(Scope& scope);
/// Takes what inference found into a value. A shape that the file declares otherwise is noted and
/// forgotten; another element type, or another shape of a constant, is an error.
void refine(Scope& scope, ValueId id, const ValueType& found);

}  // namespace quench::ops
