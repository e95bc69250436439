// SPDX-License-Identifier: Apache-2.0
// Times a model in ONNX Runtime, where that is installed.
#pragma once

#include <string>

#include "quench/evaluate.h"

namespace quench::cli {

/// Runs the model in ONNX Runtime by the Python interpreter `python`, timed as quench::bench does.
BenchResult bench_onnxruntime(const std::string& model, const BenchOptions& options,
                              const std::string& python, int threads);

}  // namespace quench::cli
