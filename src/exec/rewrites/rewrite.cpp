// SPDX-License-Identifier: Apache-2.0
// The list of rewrites.
#include "exec/rewrites/rewrite.h"

#include <array>

namespace quench::exec::rewrites {

std::span<const PassInfo> all_rewrites() noexcept {
  static constexpr std::array kRewrites = {
#define QUENCH_PASS(name, summary) PassInfo{#name, summary, name},
#include "exec/rewrites/rewrites.inc"
#undef QUENCH_PASS
  };
  return kRewrites;
}

PassReport run(Model& model, std::span<const std::string_view> names, const PassOptions& options,
               Checks checks) {
  return passes::run(model, names, options, checks, all_rewrites());
}

}  // namespace quench::exec::rewrites
