// SPDX-License-Identifier: Apache-2.0
// Fuzzes Paddle's reader of PIR's JSON, and the translation into a graph.
#include <cstdint>
#include <vector>

#include "paddle_model.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A copy of exactly this size, so that a read past its end is seen.
  const std::vector<std::uint8_t> bytes(data, data + size);
  quench::fuzz::read_program(
      [&] { return quench::paddle::read_pir(std::as_bytes(std::span(bytes))); });
  return 0;
}
