// SPDX-License-Identifier: Apache-2.0
// Fuzzes Paddle's reader of parameters: a file of one record, and one of as many as it holds.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "formats/paddle/params.h"
#include "quench/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A copy of exactly this size, so that a read past its end is seen.
  const auto bytes = std::make_shared<std::vector<std::uint8_t>>(data, data + size);
  const quench::onnx::Stored file{std::as_bytes(std::span(*bytes)), bytes};
  for (std::size_t count = 1; count < 4; ++count) {
    std::vector<quench::paddle::Parameter> parameters(count);
    for (std::size_t i = 0; i < count; ++i) parameters[i].name = std::to_string(i);
    try {
      for (const quench::Tensor& each : quench::paddle::read_combined(file, parameters)) {
        (void)quench::paddle::record_header(each);
      }
    } catch (const quench::Error& error) {
      if (error.kind() == quench::ErrorKind::Internal) std::abort();
    }
  }
  return 0;
}
