// SPDX-License-Identifier: Apache-2.0
// The passes that only the engine wants, and how it runs them among the others.
#pragma once

#include "exec/fused.h"
#include "passes/rewriter.h"
#include "passes/run.h"

namespace quench::exec::rewrites {

// A rewrite is a pass and is written in their words.
using namespace passes;  // NOLINT(google-build-using-namespace)

#define QUENCH_PASS(name, summary) PassReport name(Model& model, const PassOptions& options);
#include "exec/rewrites/rewrites.inc"
#undef QUENCH_PASS

/// Every rewrite, in the order of rewrites.inc.
std::span<const PassInfo> all_rewrites() noexcept;

/// Runs the named rewrites and passes in the order given; an unknown name is an Error(Usage).
PassReport run(Model& model, std::span<const std::string_view> names, const PassOptions& options,
               Checks checks = Checks::None);

}  // namespace quench::exec::rewrites
