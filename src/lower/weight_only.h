// SPDX-License-Identifier: Apache-2.0
// Puts integer weights into a graph, dequantised by standard operators where they are read.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "plan/weight_sites.h"
#include "quant/weight.h"
#include "quench/model.h"

namespace quench::lower {

/// Replaces weights one after the other, so that no more than one of them is held twice.
class WeightWriter {
 public:
  explicit WeightWriter(Model& model);
  WeightWriter(const WeightWriter&) = delete;
  WeightWriter& operator=(const WeightWriter&) = delete;

  /// The readers named by `sites`, all of one value, read `weight` from now on. The float constant
  /// is given up where nothing else reads it.
  void replace(const std::vector<plan::WeightSite>& sites, const quant::QuantWeight& weight);
  /// Puts the new nodes in their places and drops what is unused: all that a graph inside another
  /// one needs.
  void place();
  /// Does that, raises the opset as needed, and checks the model.
  void finish();

 protected:
  struct Stored {
    ValueId integers = kNoValue;
    ValueId scale = kNoValue;
    ValueId zero_point = kNoValue;
    int axis = -1;
    std::int64_t block = 0;
    std::string name;              ///< of the float constant
    DType dtype = DType::Float32;  ///< likewise
    std::size_t rank = 0;          ///< likewise
  };
  Stored store(ValueId value, const quant::QuantWeight& weight);
  /// Drops the float constant unless others than so many readers want it.
  void give_up(ValueId value, std::size_t readers);
  /// A node with a name of its own.
  Node make(std::string op_type, std::vector<ValueId> inputs, ValueId output);
  /// Where a site's node stands, until `place` adds the new ones.
  NodeId place_of(const plan::WeightSite& site) const {
    return static_cast<NodeId>(&site.node_in(graph_) - graph_.nodes.data());
  }
  Node& node_of(const plan::WeightSite& site) {
    return graph_.nodes[static_cast<std::size_t>(place_of(site))];
  }

  Model& model_;
  Graph& graph_;
  std::map<NodeId, std::vector<Node>> before_;
  std::map<NodeId, std::vector<Node>> after_;

 private:
  void read_dequantized(const plan::WeightSite& site, const Stored& stored);
  void gather_integers(const plan::WeightSite& site, const Stored& stored);
  ValueId gather_beside(const plan::WeightSite& site, std::size_t rank, ValueId table,
                        const char* what);

  Uses uses_;
  std::set<std::string> captured_;
  std::set<std::string> names_;
  std::int64_t opset_ = 13;
};

}  // namespace quench::lower
