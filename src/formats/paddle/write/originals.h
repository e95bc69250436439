// SPDX-License-Identifier: Apache-2.0
// The program that a model was read from: operators that nobody touched are written as they stood.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "formats/paddle/origin.h"
#include "formats/paddle/write/writer.h"

namespace quench::paddle::write {

class Originals {
 public:
  /// `program`: what the nodes came from, as their origins have it; empty: nothing is known of it.
  Originals(const Model& model, ProgramDesc program, Inner inner);

  /// Writes the operators whose constants are what they were; before all others.
  void write_constants(Writer& writer) const;
  /// Whether the node came from an operator that is still whole.
  bool has(NodeId id) const { return inside_.contains(id); }
  /// Writes the operator of its last node; false for a node that its row must write.
  bool write(NodeId id, Writer& writer) const;
  /// Feed and fetch operators, where the program has them for the same variables.
  const OpDesc* port(std::string_view type, const std::string& variable) const;
  const ProgramDesc& program() const noexcept { return program_; }

 private:
  /// The nodes of one operator.
  struct Group {
    int op = 0;
    std::vector<NodeId> nodes;  ///< by place
  };
  void find_constants();
  void find_groups();
  /// Keeps those that are whole and read and write none of some variables.
  void keep(const std::map<int, Group>& groups, const std::set<std::string>& without);
  bool whole(const Group& group) const;
  bool has_form(const Group& group) const;
  bool same(const Group& group, const Node& node, const Origin& origin) const;
  bool together(const Group& group) const;
  bool alone(const Group& group) const;
  bool covers(const Group& group) const;
  bool keeps_names(const Group& group) const;
  bool can_become(ValueId value, const std::string& variable, NodeId node) const;
  bool read_behind(ValueId value, NodeId node) const;
  std::string name_of(ValueId value) const;
  void call_outputs(const Group& group);
  void write_blocks(const Group& group, Writer& writer) const;
  /// Parameters that its nodes hold in another form, as they were.
  std::map<std::string, Tensor> restored(const Group& group) const;
  std::string input(const std::string& name, ValueId value, Writer& writer) const;

  const Graph& graph_;
  Inner inner_;
  Uses uses_;
  ProgramDesc program_;
  std::map<std::string, Shape> shapes_;         ///< of parameters, as the program declares them
  std::vector<std::optional<Origin>> origins_;  ///< by node
  std::map<NodeId, Group> last_;                ///< whole operators, by their last node
  std::set<NodeId> inside_;                     ///< nodes of whole operators
  std::map<ValueId, int> constants_;            ///< the operators that make them
  std::map<ValueId, std::string> called_;       ///< what whole blocks write in place
  std::map<std::string, ValueId> holders_;      ///< the last value that is called so
};

}  // namespace quench::paddle::write
