// SPDX-License-Identifier: Apache-2.0
// Fuzzes the ONNX reader and what every command does with a model next: check, infer, dump, write.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "formats/onnx/file.h"
#include "quench/error.h"
#include "quench/model.h"

namespace {

/// A file in memory where there is such a folder: writing to disk would wait for it every time.
std::string scratch_path() {
  const std::string name = "quench_fuzz_" + std::to_string(::getpid()) + ".onnx";
  std::error_code none;
  const std::filesystem::path shm = "/dev/shm";
  const bool there = std::filesystem::is_directory(shm, none);
  return ((there ? shm : std::filesystem::temp_directory_path()) / name).string();
}

void write_and_read_again(const quench::Model& model) {
  static const std::string path = scratch_path();
  try {
    quench::onnx::stage_file(model, path, {.data = quench::SaveOptions::Data::Inside})->commit();
    quench::onnx::read_file(path);
  } catch (const quench::Error& error) {
    // A model that was read must be writable, and what was written must be the same.
    if (error.kind() == quench::ErrorKind::Internal) std::abort();
  }
  std::error_code none;
  std::filesystem::remove(path, none);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    // A copy of exactly this size, so that a read past its end is seen.
    auto bytes = std::make_shared<std::vector<std::uint8_t>>(data, data + size);
    quench::Model model =
        quench::onnx::read_bytes("model.onnx", {std::as_bytes(std::span(*bytes)), bytes});
    quench::verify(model);
    (void)quench::dump(model);
    write_and_read_again(model);
    quench::infer_types(model);
    quench::infer_types(model);  // what was inferred must not contradict itself
    (void)quench::dump(model);
  } catch (const quench::Error& error) {
    if (error.kind() == quench::ErrorKind::Internal) std::abort();
  }
  return 0;
}
