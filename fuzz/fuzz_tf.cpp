// SPDX-License-Identifier: Apache-2.0
// Fuzzes the reader of frozen TensorFlow graphs and the translation into a graph.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "formats/tensorflow/file.h"
#include "quench/error.h"
#include "quench/model.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A copy of exactly this size, so that a read past its end is seen.
  const std::vector<std::uint8_t> bytes(data, data + size);
  try {
    (void)quench::dump(quench::tensorflow::read_bytes(std::as_bytes(std::span(bytes))));
  } catch (const quench::Error& error) {
    if (error.kind() == quench::ErrorKind::Internal) std::abort();
  }
  return 0;
}
