// SPDX-License-Identifier: Apache-2.0
// Fuzzes the TFLite reader, the translation into a graph, and the writer by what was read.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "formats/tflite/file.h"
#include "quench/error.h"
#include "quench/model.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A copy of exactly this size, so that a read past its end is seen.
  const auto bytes = std::make_shared<std::vector<std::uint8_t>>(data, data + size);
  try {
    const quench::Model model = quench::tflite::read_bytes(std::as_bytes(std::span(*bytes)), bytes);
    (void)quench::dump(model);
    (void)quench::tflite::as_read(model);
  } catch (const quench::Error& error) {
    if (error.kind() == quench::ErrorKind::Internal) std::abort();
  }
  return 0;
}
