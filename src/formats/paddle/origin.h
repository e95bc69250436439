// SPDX-License-Identifier: Apache-2.0
// Where in its program a node came from, and what it was then: what was not touched since is
// written back as the program had it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quench/graph.h"

namespace quench::paddle {

/// What kept the original of a model: the serialized program, and PIR's text.
inline constexpr std::string_view kProgramForeign = "paddle";
inline constexpr std::string_view kPirForeign = "pir";

/// One of the nodes that an operator became. Inputs and outputs are texts: "#2.0" is the first
/// output of the third of these nodes, "=..." a constant that the operator brought, ":name" a
/// variable.
struct Origin {
  int block = 0;  ///< BlockDesc.idx
  int op = 0;     ///< position among its operators
  int place = 0;  ///< of the node among those that the operator became
  int count = 1;
  std::string form;  ///< operator and attributes
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  /// What the graphs inside it read from around it: the variable of each of `captured_values`.
  std::vector<std::string> captured;
};

/// Written into `foreign` of every node, and of every constant, that an operator became.
std::string to_foreign(const Origin& origin);
/// The reverse; nothing for what another format or no operator made.
std::optional<Origin> origin_of(std::string_view foreign);

/// The operator of a node and its attributes as one short text; "" where there is none for them.
std::string form_of(const Node& node);
/// A constant as a short text.
std::string form_of(const Tensor& tensor);

/// The values around a node that graphs inside it read, each once.
std::vector<ValueId> captured_values(const Graph& graph, const Node& node);

/// Says of nodes `first` to the last what they are now, and that they came from one operator.
/// `variables`: what the values were called that are variables of the program; `captured`: those
/// that graphs inside nodes read, by the names of values.
void remember(Graph& graph, std::size_t first, int block, int op,
              const std::map<ValueId, std::string>& variables,
              const std::map<std::string, std::string>& captured);

}  // namespace quench::paddle
