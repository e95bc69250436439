// SPDX-License-Identifier: Apache-2.0
// Describes a model file without running it.
#include <unordered_set>

#include "base/file.h"
#include "evaluate/random_inputs.h"
#include "formats/disk_bytes.h"
#include "formats/foreign.h"
#include "formats/locate.h"
#include "formats/registry.h"
#include "quench/evaluate.h"
#include "quench/formats.h"

namespace quench {
namespace {

std::string full_op_name(const Node& node) {
  return node.domain.empty() ? node.op_type : node.domain + "." + node.op_type;
}

void count_weight(const Tensor& tensor, ModelSummary& summary) {
  ModelSummary::WeightBytes& row = summary.weights_by_type[std::string(name_of(tensor.dtype()))];
  row.tensors += 1;
  row.elements += tensor.size();
  row.bytes += static_cast<std::int64_t>(tensor.num_bytes());
  summary.num_parameters += tensor.size();
}

void count_graph(const Graph& graph, ModelSummary& summary) {
  for (const Node& node : graph.nodes) {
    summary.num_nodes += 1;
    summary.op_counts[full_op_name(node)] += 1;
    // Some exporters keep their weights in Constant nodes.
    if (const auto* tensor = node.get<Tensor>("value"); tensor && node.op_type == "Constant") {
      count_weight(*tensor, summary);
    }
  }
  for (const Value& value : graph.values()) {
    if (value.constant && !value.captured) count_weight(*value.constant, summary);
  }
}

/// Scales that a file gives its tensors, where no nodes of the graph say them.
void add_scales(const Graph& graph, ModelSummary& summary) {
  for (const Value& value : graph.values()) {
    if (const auto text = foreign_of(value.foreign, "ms")) {
      summary.scales.push_back({value.name, to_string(value.type), std::string(*text)});
    }
  }
}

/// Bytes of external data; constants that share a place in a file are counted once.
std::int64_t external_bytes(const Graph& root) {
  std::unordered_set<const void*> seen;
  std::int64_t total = 0;
  for_each_graph(root, [&](const Graph& graph) {
    for (const Value& value : graph.values()) {
      if (!value.constant || value.form != ConstantForm::External) continue;
      const Tensor& tensor = *value.constant;
      if (!seen.insert(tensor.identity()).second) continue;
      total += static_cast<std::int64_t>(tensor.num_bytes());
    }
  });
  return total;
}

/// Of files of parameters. Of an ONNX model's, only what its constants are read from counts.
std::int64_t parameter_bytes(const std::string& path) {
  std::int64_t total = 0;
  const FormatInfo* format = format_of(path);
  if (format == nullptr || format->name == onnx_format().name) return total;
  for (const std::string& file : model_data_files(locate_model(path))) {
    total += static_cast<std::int64_t>(file_size(file));
  }
  return total;
}

}  // namespace

std::int64_t bytes_on_disk(const std::string& path, const Model& model) {
  const auto bytes = static_cast<std::int64_t>(file_size(locate_model(path).model));
  return bytes + external_bytes(model.graph) + parameter_bytes(path);
}

ModelSummary inspect(const std::string& path) {
  const Model model = load_to_show(path);
  ModelSummary summary;
  summary.path = path;
  summary.bytes_on_disk = bytes_on_disk(path, model);
  summary.ir_version = model.ir_version;
  summary.opsets = model.opsets;
  summary.producer = model.producer_name;
  if (!model.producer_version.empty()) summary.producer += " " + model.producer_version;
  summary.inputs = required_inputs(model.graph);
  summary.outputs = output_values(model.graph);
  for_each_graph(model.graph, [&](const Graph& graph) { count_graph(graph, summary); });
  add_scales(model.graph, summary);
  // Of what can only be looked at, nothing is run.
  if (format_of(path)->only_shown.empty()) summary.unsupported = find_unsupported(model);
  return summary;
}

}  // namespace quench
