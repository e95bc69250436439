// SPDX-License-Identifier: Apache-2.0
// Writes a TFLite file, read again before it has its name.
#include "base/file.h"

#include "formats/tflite/file.h"
#include "formats/tflite/write/writer.h"

namespace quench::tflite {

Model as_read(const Model& model) {
  const auto bytes = std::make_shared<std::string>(write_program(write::to_program(model)));
  return read_bytes(std::as_bytes(std::span(*bytes)), bytes);
}

std::unique_ptr<Staged> stage_file(const Model& model, const std::string& path) {
  const std::string bytes = write_program(write::to_program(model));
  const auto copy = std::make_shared<std::string>(bytes);
  (void)read_bytes(std::as_bytes(std::span(*copy)), copy);
  auto file = std::make_unique<AtomicFile>(path);
  file->write(bytes);
  return file;
}

}  // namespace quench::tflite
