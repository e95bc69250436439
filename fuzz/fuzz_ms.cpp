// SPDX-License-Identifier: Apache-2.0
// Fuzzes the reader of MindSpore Lite's .ms files.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "formats/ms/file.h"
#include "quench/error.h"
#include "quench/model.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A copy of exactly this size, so that a read past its end is seen.
  const auto bytes = std::make_shared<std::vector<std::uint8_t>>(data, data + size);
  try {
    (void)quench::dump(quench::ms::read_bytes(std::as_bytes(std::span(*bytes)), bytes));
  } catch (const quench::Error& error) {
    if (error.kind() == quench::ErrorKind::Internal) std::abort();
  }
  return 0;
}
