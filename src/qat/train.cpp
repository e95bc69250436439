// SPDX-License-Identifier: Apache-2.0
// Calls the engine module.
#include "qat/train.h"

#include "base/module.h"

namespace quench::qat {
namespace {

Result call(const char* symbol, const Request& request) {
  return reinterpret_cast<TrainFunction>(module_symbol("engine", symbol, request.context))(request);
}

}  // namespace

Result train(const Request& request) { return call("quench_engine_train", request); }
Result reconstruct(const Request& request) { return call("quench_engine_reconstruct", request); }

}  // namespace quench::qat
