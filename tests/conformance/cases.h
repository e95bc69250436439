// SPDX-License-Identifier: Apache-2.0
// The conformance cases of the ONNX project: models with input and output tensors.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "quench/session.h"

namespace quench::test {

/// One case: a folder with model.onnx and folders of tensors.
struct Case {
  std::string name;  ///< "node/test_relu"
  std::filesystem::path folder;
};

/// Every case below `data`, sorted by name.
std::vector<Case> list_cases(const std::filesystem::path& data);

struct Outcome {
  enum class Kind { Passed, Unsupported, Wrong };
  Kind kind = Kind::Passed;
  std::string reason;
};

/// The model of a case.
Model load_case(const Case& which);

/// Runs a case and compares as ONNX's own runner does.
Outcome run_case(const Case& which, const SessionOptions& options, const Context& context);

/// The difference between two tensors in words, or "" when there is none that counts.
std::string difference(const Tensor& got, const Tensor& expected, double relative, double absolute);

/// The inputs of each data set of a case.
std::vector<TensorMap> case_inputs(const Case& which, const Session& session);

}  // namespace quench::test
