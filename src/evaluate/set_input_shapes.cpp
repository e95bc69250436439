// SPDX-License-Identifier: Apache-2.0
// Fixes the shapes of graph inputs.
#include "base/format.h"
#include "base/nearest.h"
#include "quench/quantize.h"

namespace quench {
namespace {

ValueId input_called(const Graph& graph, const std::string& name) {
  std::vector<std::string> names;
  for (const ValueId id : graph.inputs) {
    if (graph[id].name == name) return id;
    names.push_back(graph[id].name);
  }
  fail(ErrorKind::Usage, "the model has no input '{}' to set the shape of{}", name,
       did_you_mean(name, names));
}

}  // namespace

void set_input_shapes(Model& model, const std::map<std::string, Shape>& shapes) {
  for (const auto& [name, shape] : shapes) {
    Value& value = model.graph[input_called(model.graph, name)];
    const auto& old = value.type.shape;
    bool fits = !old || old->size() == shape.size();
    for (std::size_t i = 0; fits && old && i < shape.size(); ++i) {
      fits = !(*old)[i].known() || (*old)[i].value == shape[i];
    }
    if (!fits) {
      fail(ErrorKind::Usage, "input '{}' is {} in the model; the shape [{}] does not fit", name,
           to_string(value.type), fmt::join(shape, ","));
    }
    std::vector<Dim> dims;
    for (const std::int64_t dim : shape) dims.push_back({.value = dim, .symbol = {}});
    value.type.shape = std::move(dims);
  }
}

}  // namespace quench
