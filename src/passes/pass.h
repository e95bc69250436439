// SPDX-License-Identifier: Apache-2.0
// What a pass is: a rewrite of a model that keeps its meaning, and the list of all of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "quench/model.h"

namespace quench::passes {

struct PassOptions {
  /// Names of values that must survive with their meaning: taps. Graph outputs always do.
  std::unordered_set<std::string> keep;
  /// The version of ONNX's own operators; 0: what the model imports.
  std::int64_t opset = 0;
  /// Constants that are graph inputs too, as old exporters list them all, may be fed by the caller
  /// (IR version 4 and later) and are not folded.
  bool inputs_override = false;
};

struct PassReport {
  std::size_t changes = 0;
  std::vector<std::string> notes;  ///< what the user should know, one sentence each
};

struct PassInfo {
  std::string_view name;
  std::string_view summary;
  PassReport (*run)(Model& model, const PassOptions& options);
};

#define QUENCH_PASS(name, summary) PassReport name(Model& model, const PassOptions& options);
#include "passes/passes.inc"
#undef QUENCH_PASS

/// Every pass, in the order of passes.inc.
std::span<const PassInfo> all_passes() noexcept;

}  // namespace quench::passes
