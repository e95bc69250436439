// SPDX-License-Identifier: Apache-2.0
// Reads the tensors that ONNX's own test data keeps in files of one message each.
#pragma once

#include <string>

#include "base/file.h"
#include "formats/onnx/file.h"
#include "formats/onnx/wire.h"
#include "quench/error.h"

namespace quench::test {

/// A file that holds one serialized TensorProto. It is read by Quench's own reader, as the only
/// weight of a model that is made around it.
inline Tensor read_tensor_file(const std::string& path) {
  const auto file = MappedFile::open(path);
  std::string tensor;
  onnx::append_bytes(tensor, file->bytes());
  constexpr std::uint32_t kTensorName = 8;
  onnx::append_header(tensor, kTensorName, 1);  // the last name in a message counts
  tensor += 't';
  std::string graph;
  constexpr std::uint32_t kInitializer = 5;
  onnx::append_header(graph, kInitializer, tensor.size());
  graph += tensor;
  const auto model = std::make_shared<std::string>("\x08\x08");  // ir_version: 8
  constexpr std::uint32_t kGraph = 7;
  onnx::append_header(*model, kGraph, graph.size());
  *model += graph;
  *model += "\x42\x02\x10\x0d";  // opset_import: {version: 13}
  const onnx::Stored stored{std::as_bytes(std::span(model->data(), model->size())), model};
  const Model read = onnx::read_bytes(path, stored);
  return *read.graph.constant(read.graph.find("t"));
}

}  // namespace quench::test
