// SPDX-License-Identifier: Apache-2.0
// One run of a model on tensors from files: the job behind `quench run`.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "quench/context.h"
#include "quench/dtype.h"
#include "quench/session.h"

namespace quench {

/// What `run_model` computes and where it writes.
struct RunOptions {
  /// By input: "a.npy", "a.npz:member", "zeros", "ones", "random" or "random:SEED". The name ""
  /// stands for the only input.
  std::map<std::string, std::string> inputs;
  /// By input, where zeros, ones and random leave dimensions open.
  std::map<std::string, Shape> shapes;
  /// Values to return besides the outputs.
  std::vector<std::string> taps;
  /// Folder for one .npy file a value and index.json; empty: nothing is written.
  std::string output_dir;
  Dequantize dequantize = Dequantize::AtLoad;
  Rounding rounding = Rounding::Once;
};

/// One computed value: what it looks like and where it was written.
struct RunValue {
  std::string name;
  DType dtype = DType::Undefined;
  Shape shape;
  double min = 0;  ///< over the elements that are numbers; NaN when there are none
  double max = 0;
  double mean = 0;
  std::string file;  ///< inside output_dir; empty when nothing was written
};

/// Computes everything, then writes it; a failure leaves no half-written file.
std::vector<RunValue> run_model(const std::string& model_path, const RunOptions& options,
                                const Context& context = {});

}  // namespace quench
