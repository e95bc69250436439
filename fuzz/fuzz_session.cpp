// SPDX-License-Identifier: Apache-2.0
// Fuzzes what happens between reading a model and running it: passes, inference, constant folding
// and compiling.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "formats/onnx/file.h"
#include "quench/error.h"
#include "quench/session.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  quench::Context context;
  context.threads = 1;
  context.module_dir = QUENCH_FUZZ_ENGINE;
  static const bool loaded = (quench::load_engine(context), true);
  (void)loaded;
  try {
    auto bytes = std::make_shared<std::vector<std::uint8_t>>(data, data + size);
    quench::Model model =
        quench::onnx::read_bytes("model.onnx", {std::as_bytes(std::span(*bytes)), bytes});
    const quench::Session session(std::move(model), {}, context);
  } catch (const quench::Error& error) {
    if (error.kind() == quench::ErrorKind::Internal) std::abort();
  }
  return 0;
}
