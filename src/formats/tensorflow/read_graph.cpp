// SPDX-License-Identifier: Apache-2.0
// Parses a GraphDef, finds the nodes behind the names of inputs, and puts them in order.
#include <algorithm>
#include <charconv>
#include <limits>

#include "base/format.h"
#include "formats/tensorflow/file.h"
#include "formats/tensorflow/graph.h"
#include "formats/tensorflow/rows.h"
#include "formats/tidy.h"

namespace quench::tensorflow {
namespace {

using Index = std::map<std::string, int, std::less<>>;

wire::GraphDef parse(std::span<const std::byte> file) {
  if (is_saved_model(file)) {
    fail(ErrorKind::Unsupported,
         "this is a SavedModel, whose weights lie elsewhere; freeze it first "
         "(convert_variables_to_constants_v2 of tensorflow), or export it (python -m "
         "tf2onnx.convert --saved-model DIR --output model.onnx)");
  }
  wire::GraphDef graph;
  if (file.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()) ||
      !graph.ParseFromArray(file.data(), static_cast<int>(file.size()))) {
    fail(ErrorKind::BadModel, "the file is no sound GraphDef, or was cut short; get it again");
  }
  if (graph.node_size() == 0) fail(ErrorKind::BadModel, "the graph has no nodes");
  return graph;
}

/// What keeps weights outside the graph.
bool is_variable(std::string_view op) {
  return op.starts_with("Variable") || op.starts_with("VarHandle") ||
         op.starts_with("ReadVariable") || op.starts_with("Restore") || op.starts_with("Save") ||
         op == "PartitionedCall" || op == "StatefulPartitionedCall";
}

void expect_known(const wire::GraphDef& graph) {
  std::map<std::string, int> missing;
  bool variables = false;
  for (const wire::NodeDef& node : graph.node()) {
    if (find_row(node.op()) != nullptr) continue;
    ++missing[node.op()];
    variables = variables || is_variable(node.op());
  }
  if (missing.empty()) return;
  const std::vector<std::string> names = formats::counted(missing);
  if (variables) {
    fail(ErrorKind::Unsupported,
         "the graph is not frozen, it has {}: its weights lie elsewhere; freeze it "
         "(convert_variables_to_constants_v2 of tensorflow) and try again",
         fmt::join(names, ", "));
  }
  fail(ErrorKind::Unsupported,
       "the graph uses operators of TensorFlow that are not known: {}; cut the graph before them, "
       "or export it to ONNX with tf2onnx (`quench list operators --format tf`)",
       fmt::join(names, ", "));
}

Index index_of(const wire::GraphDef& graph) {
  Index index;
  for (int i = 0; i < graph.node_size(); ++i) {
    if (index.emplace(graph.node(i).name(), i).second) continue;
    fail(ErrorKind::BadModel, "two nodes are called '{}'", graph.node(i).name());
  }
  return index;
}

/// "name", "name:1"; "^name" only says that it runs before.
std::vector<Source> sources(const wire::NodeDef& node, const Index& index) {
  std::vector<Source> result;
  for (const std::string& given : node.input()) {
    if (given.starts_with('^')) continue;
    const std::size_t colon = given.rfind(':');
    Source source;
    if (colon != std::string::npos) {
      const char* end = given.data() + given.size();
      const auto [stop, error] = std::from_chars(given.data() + colon + 1, end, source.output);
      if (error != std::errc{} || stop != end || source.output < 0) {
        fail(ErrorKind::BadModel, "node '{}' reads '{}', which names no output", node.name(),
             given);
      }
    }
    const auto found = index.find(std::string_view(given).substr(0, colon));
    if (found == index.end()) {
      fail(ErrorKind::BadModel, "node '{}' reads '{}', but the graph has no such node", node.name(),
           given);
    }
    source.node = found->second;
    result.push_back(source);
  }
  return result;
}

/// Each node behind those it reads; without recursion, since a chain may be long.
std::vector<int> ordered(const std::vector<GraphNode>& nodes) {
  std::vector<std::vector<int>> readers(nodes.size());
  std::vector<std::size_t> waits(nodes.size());
  std::vector<int> order;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    waits[i] = nodes[i].inputs.size();
    for (const Source& source : nodes[i].inputs) {
      readers[static_cast<std::size_t>(source.node)].push_back(static_cast<int>(i));
    }
    if (waits[i] == 0) order.push_back(static_cast<int>(i));
  }
  for (std::size_t at = 0; at < order.size(); ++at) {
    for (const int reader : readers[static_cast<std::size_t>(order[at])]) {
      if (--waits[static_cast<std::size_t>(reader)] == 0) order.push_back(reader);
    }
  }
  if (order.size() == nodes.size()) return order;
  const auto stuck = std::ranges::find_if(waits, [](std::size_t each) { return each > 0; });
  fail(ErrorKind::BadModel,
       "node '{}' waits for its own result: loops are not read; export the graph for inference",
       nodes[static_cast<std::size_t>(stuck - waits.begin())].def.name());
}

}  // namespace

std::vector<GraphNode> read_graph(std::span<const std::byte> file) {
  wire::GraphDef graph = parse(file);
  expect_known(graph);
  const Index index = index_of(graph);
  std::vector<GraphNode> nodes(static_cast<std::size_t>(graph.node_size()));
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].inputs = sources(graph.node(static_cast<int>(i)), index);
    nodes[i].def = std::move(*graph.mutable_node(static_cast<int>(i)));
  }
  const std::vector<int> order = ordered(nodes);
  std::vector<int> place(nodes.size());
  std::vector<GraphNode> result(nodes.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    place[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
    result[i] = std::move(nodes[static_cast<std::size_t>(order[i])]);
  }
  for (GraphNode& node : result) {
    for (Source& source : node.inputs) source.node = place[static_cast<std::size_t>(source.node)];
  }
  return result;
}

}  // namespace quench::tensorflow
