// SPDX-License-Identifier: Apache-2.0
// From a GraphDef to a model, by way of TFLite's program, whose translation has both layouts.
#include <algorithm>

#include "base/format.h"
#include "formats/tensorflow/file.h"
#include "formats/tensorflow/graph.h"
#include "formats/tensorflow/rows.h"
#include "formats/tensorflow/step.h"
#include "formats/tflite/translate.h"

namespace quench::tensorflow {
namespace {

bool is_source(std::string_view op) { return op == "Const" || op == "Placeholder"; }

/// A tensor of floats under the node's own name.
int output_of(Step& step, int tensor, std::size_t output) {
  const tflite::TensorItem& item = step.item(tensor);
  const tflite::Program& program = step.state().program;
  if (item.quantized()) {
    return step.make("DEQUANTIZE", {tensor}, Shape(item.shape), DType::Float32);
  }
  const bool input = std::ranges::count(program.inputs, tensor) > 0;
  const bool taken = std::ranges::count(program.outputs, tensor) > 0;
  if (!input && !taken) step.mutable_item(tensor).name = step.result_name(output);
  return tensor;
}

/// What nothing reads comes out.
void add_outputs(Lowering& state, const std::vector<GraphNode>& nodes) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (state.readers[i] > 0 || is_source(nodes[i].def.op())) continue;
    Step step(state, nodes[i], static_cast<int>(i), "");
    const std::vector<int> made = state.outputs[i];
    for (std::size_t output = 0; output < made.size(); ++output) {
      // Sizes alone are no result of a network.
      if (made[output] < 0 || state.sizes.contains(made[output])) continue;
      state.program.outputs.push_back(output_of(step, made[output], output));
    }
  }
  if (state.program.outputs.empty()) fail(ErrorKind::BadModel, "the graph has no outputs");
}

tflite::Program lowered(const std::vector<GraphNode>& nodes) {
  Lowering state;
  state.outputs.resize(nodes.size());
  state.readers.assign(nodes.size(), 0);
  for (const GraphNode& node : nodes) {
    for (const Source& source : node.inputs) ++state.readers[static_cast<std::size_t>(source.node)];
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const OpRow& row = *find_row(nodes[i].def.op());
    if (row.name == "Placeholder" && state.readers[i] == 0) continue;
    try {
      Step step(state, nodes[i], static_cast<int>(i), row.as);
      row.lower(step);
    } catch (Error& error) {
      throw error.in(format("node '{}' ({})", nodes[i].def.name(), nodes[i].def.op()));
    }
  }
  add_outputs(state, nodes);
  return std::move(state.program);
}

}  // namespace

Model read_bytes(std::span<const std::byte> file) {
  Model model = tflite::translate(lowered(read_graph(file)));
  model.producer_name = "TensorFlow";
  return model;
}

}  // namespace quench::tensorflow
