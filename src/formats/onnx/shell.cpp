// SPDX-License-Identifier: Apache-2.0
// A model as one message and a list of tensors, for formats that store tensors in their own way.
#include <climits>

#include "base/format.h"
#include "formats/onnx/convert.h"
#include "formats/onnx/file.h"
#include "formats/onnx/onnx.pb.h"

namespace quench::onnx {

Shell to_shell(const Model& model) {
  Store store = Store::of_parts();
  ModelProto proto;
  write_model(model, store, proto);
  Shell shell;
  if (proto.ByteSizeLong() > kMaxFileBytes || !proto.SerializeToString(&shell.text)) {
    fail(ErrorKind::Unsupported, "the model has more than 2 GB besides its weights");
  }
  shell.parts = std::move(store.parts());
  return shell;
}

Model from_shell(std::span<const std::byte> text, std::vector<Stored> parts) {
  ModelProto proto;
  if (text.size() > INT_MAX || !proto.ParseFromArray(text.data(), static_cast<int>(text.size()))) {
    fail(ErrorKind::BadModel, "the file is damaged: protobuf cannot read its graph");
  }
  Source source(std::move(parts));
  Model model = read_model(proto, source);
  verify(model);
  return model;
}

}  // namespace quench::onnx
