// SPDX-License-Identifier: Apache-2.0
// From a network and its weights to a graph in ONNX's vocabulary.
#include <algorithm>
#include <set>

#include "base/format.h"
#include "formats/caffe/layer.h"
#include "formats/caffe/net.h"
#include "formats/caffe/rows.h"
#include "formats/tidy.h"

namespace quench::caffe {
namespace {

void expect_known(const Net& net) {
  std::map<std::string, int> missing;
  for (const LayerParameter& layer : net.layers) {
    if (find_row(layer.type()) == nullptr) ++missing[layer.type()];
  }
  if (missing.empty()) return;
  const std::vector<std::string> names = formats::counted(missing);
  fail(
      ErrorKind::Unsupported,
      "the network uses layers of Caffe that are not known: {}; take the network's deploy file, or "
      "cut it before them (`quench list operators --format caffe`)",
      fmt::join(names, ", "));
}

/// Weights for layers that the network does not have, and none for those it has, are another's.
void expect_own(const Net& net, const LayerBlobs& weights) {
  const bool any = std::ranges::any_of(
      net.layers, [&](const LayerParameter& layer) { return weights.contains(layer.name()); });
  if (any || weights.empty()) return;
  fail(ErrorKind::BadModel,
       "no layer of the network is called as those of the file of weights ('{}', ...); it is the "
       "one of another network",
       weights.begin()->first);
}

void add_head_inputs(const Net& net, Tops& tops, GraphMaker& make) {
  for (const NetInput& input : net.inputs) {
    if (input.shape.empty()) {
      fail(ErrorKind::BadModel, "the input '{}' has no shape (input_shape, input_dim)", input.name);
    }
    LayerParameter parameter;
    parameter.set_type("Input");
    parameter.add_top(input.name);
    Layer(parameter, {}, tops, make).set_input(input.shape, 0);
  }
}

/// Blobs that nothing reads, in the order of their layers, under their own names.
void add_outputs(const Net& net, const Tops& tops, GraphMaker& make) {
  std::set<std::string_view> left;
  std::vector<std::string_view> order;
  for (const LayerParameter& layer : net.layers) {
    for (const std::string& bottom : layer.bottom()) left.erase(bottom);
    for (const std::string& top : layer.top()) {
      left.insert(top);
      std::erase(order, top);
      order.push_back(top);
    }
  }
  Graph& graph = make.graph();
  for (const std::string_view name : order) {
    const auto found = tops.find(name);
    if (!left.contains(name) || found == tops.end()) continue;
    ValueId id = found->second.value;
    const bool input = std::ranges::find(graph.inputs, id) != graph.inputs.end();
    const bool taken = std::ranges::find(graph.outputs, id) != graph.outputs.end();
    make.name_after("output", name);
    if (taken || graph[id].constant) id = make.node("Identity", {id});
    if (input) continue;
    make.rename(id, std::string(name));
    graph.outputs.push_back(id);
  }
  if (graph.outputs.empty()) fail(ErrorKind::BadModel, "the network has no outputs");
}

}  // namespace

Model translate(const Net& net, const LayerBlobs& weights) {
  expect_known(net);
  expect_own(net, weights);
  Model model;
  constexpr std::int64_t kOpset = 17;
  model.opsets[""] = kOpset;
  model.producer_name = "Caffe";
  model.graph.name = net.name.empty() ? "main" : net.name;
  GraphMaker make(model.graph);
  Tops tops;
  add_head_inputs(net, tops, make);
  for (const LayerParameter& parameter : net.layers) {
    try {
      Layer layer(parameter, weights, tops, make);
      find_row(parameter.type())->read(layer);
    } catch (Error& error) {
      throw error.in(format("layer '{}' ({})", parameter.name(), parameter.type()));
    }
  }
  add_outputs(net, tops, make);
  compact(model.graph, std::vector<bool>(model.graph.nodes.size(), false));
  (void)infer_types(model);
  verify(model);
  return model;
}

}  // namespace quench::caffe
