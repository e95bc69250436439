// SPDX-License-Identifier: Apache-2.0
// Walks the nodes of a MindIR graph, and of the graphs that it calls.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "formats/graph_maker.h"
#include "formats/mindir/entry.h"

namespace quench::mindir {

class Reader {
 public:
  /// `path` is the model's own: files of parameters lie beside it.
  Reader(const wire::ModelData& model, std::string path, Graph& graph);
  void run();

 private:
  using Called = std::vector<const wire::GraphData*>;

  void expect_known() const;
  void expect_known(const wire::GraphData& graph, std::map<std::string, int>& missing) const;
  Entry evaluate(const wire::GraphData& graph, Entries names, int depth);
  Entry evaluate(const wire::NodeData& node, const Entries& names, int depth);
  Entry call(const wire::GraphData& graph, std::vector<Entry> arguments, int depth);
  Entry translate(const wire::NodeData& node, std::string_view type, Entries attributes,
                  std::vector<Entry> inputs);
  void add_inputs(const wire::GraphData& graph, Entries& names);
  void add_parameters(const wire::GraphData& graph, Entries& names);
  void add_outputs(const Entry& result, const wire::GraphData& graph);
  Tensor parameter(const wire::TensorData& data) const;
  const wire::GraphData* function(std::string_view name) const;
  const wire::Primitive* primitive(std::string_view name) const;

  const wire::ModelData& model_;
  std::string path_;
  GraphMaker make_;
  std::map<std::string, const wire::Primitive*, std::less<>> primitives_;
  std::map<std::string, const wire::GraphData*, std::less<>> functions_;
  std::map<std::string, int, std::less<>> uses_;  ///< of names, in the whole file
  std::int64_t nodes_left_;  ///< that may still be walked: functions may call functions twice
};

/// A name without that of its graph: "112_main:conv.weight" is conv.weight.
std::string own_name(std::string_view name);
/// Files beside a model that it names; throws for one that would lie elsewhere.
std::string parameter_file(const std::string& model, const std::string& location);
/// The integers of a parameter that is quantised become floats.
ValueId dequantize(GraphMaker& make, const wire::TensorData& data, ValueId integers);

}  // namespace quench::mindir
