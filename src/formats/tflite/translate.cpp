// SPDX-License-Identifier: Apache-2.0
// From a program to a graph in ONNX's vocabulary, channels first between its layers.
#include "formats/tflite/translate.h"

#include "formats/tflite/file.h"

namespace quench::tflite {

Model translate(const Program& program) {
  Model model;
  constexpr std::int64_t kOpset = 17;
  model.opsets[""] = kOpset;
  model.producer_name = "TFLite";
  model.doc = program.description;
  model.graph.name = "main";
  Translator translator(program, model.graph);
  translator.run();
  compact(model.graph, std::vector<bool>(model.graph.nodes.size(), false));
  (void)infer_types(model);
  for (std::size_t i = 0; i < program.outputs.size(); ++i) {
    Value& value = model.graph[model.graph.outputs[i]];
    if (value.type.kind != ValueType::Kind::Unknown) continue;
    value.type = ValueType::tensor(translator.tensor(program.outputs[i]).dtype);
  }
  verify(model);
  return model;
}

Model read_bytes(std::span<const std::byte> file, std::shared_ptr<const void> owner) {
  return translate(read_program(file, std::move(owner)));
}

}  // namespace quench::tflite
