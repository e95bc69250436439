// SPDX-License-Identifier: Apache-2.0
// Fuzzes the MindIR reader, and the writer by what was read.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "formats/mindir/file.h"
#include "quench/error.h"
#include "quench/model.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A copy of exactly this size, so that a read past its end is seen.
  const std::vector<std::uint8_t> bytes(data, data + size);
  try {
    // Nothing lies beside a model of this name.
    const std::string path = "/nonexistent/model.mindir";
    const quench::Model model = quench::mindir::read_bytes(std::as_bytes(std::span(bytes)), path);
    (void)quench::dump(model);
    const std::string written = quench::mindir::write_bytes(model);
    (void)quench::mindir::read_bytes(std::as_bytes(std::span(written)), path);
  } catch (const quench::Error& error) {
    if (error.kind() == quench::ErrorKind::Internal) std::abort();
  }
  return 0;
}
