// SPDX-License-Identifier: Apache-2.0
// From a mapped file to a model that has been checked.
#include <climits>

#include "base/format.h"
#include "formats/onnx/convert.h"
#include "formats/onnx/file.h"
#include "formats/onnx/lift.h"
#include "formats/onnx/onnx.pb.h"

namespace quench::onnx {
namespace {

ModelProto parse(std::span<const std::byte> file) {
  const std::string shell = lift(file);
  if (shell.size() > INT_MAX) {
    fail(ErrorKind::Unsupported, "the model has more than 2 GB besides its weights");
  }
  ModelProto proto;
  if (!proto.ParseFromArray(shell.data(), static_cast<int>(shell.size()))) {
    fail(ErrorKind::BadModel, "the file is damaged or not ONNX: protobuf cannot read it");
  }
  return proto;
}

}  // namespace

Model read_bytes(const std::string& path, Stored file, const ReadOptions& options) {
  if (file.bytes.empty()) fail(ErrorKind::BadModel, "the file is empty; get it again");
  ModelProto proto = parse(file.bytes);
  Source source(path, std::move(file), options);
  Model model = read_model(proto, source);
  verify(model);
  return model;
}

Model read_file(const std::string& path, const ReadOptions& options) {
  const auto file = MappedFile::open(path);
  return read_bytes(path, {file->bytes(), file}, options);
}

std::set<std::string> data_locations(const std::string& path) {
  std::set<std::string> locations;
  try {
    (void)read_file(path, {.align = false, .redirects = {}, .locations = &locations});
  } catch (const Error&) {
    // What cannot be read names what was found up to there.
  }
  return locations;
}

}  // namespace quench::onnx
