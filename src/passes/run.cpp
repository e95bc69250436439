// SPDX-License-Identifier: Apache-2.0
// The list of passes and the loop over it.
#include "passes/run.h"

#include <algorithm>
#include <array>

#include "base/format.h"

namespace quench::passes {
namespace {

constexpr std::array kPasses = {
#define QUENCH_PASS(name, summary) PassInfo{#name, summary, name},
#include "passes/passes.inc"
#undef QUENCH_PASS
};

const PassInfo& find_pass(std::string_view name, std::span<const PassInfo> more) {
  std::vector<std::string_view> known;
  for (const std::span<const PassInfo> list : {std::span<const PassInfo>(kPasses), more}) {
    const auto found = std::ranges::find(list, name, &PassInfo::name);
    if (found != list.end()) return *found;
    for (const PassInfo& pass : list) known.push_back(pass.name);
  }
  fail(ErrorKind::Usage, "there is no pass called '{}'; the passes are {}", name,
       fmt::join(known, ", "));
}

}  // namespace

std::span<const PassInfo> all_passes() noexcept { return kPasses; }

PassReport run(Model& model, std::span<const std::string_view> names, const PassOptions& options,
               Checks checks, std::span<const PassInfo> more) {
  PassReport total;
  for (const std::string_view name : names) {
    const PassInfo& pass = find_pass(name, more);
    try {
      PassReport report = pass.run(model, options);
      total.changes += report.changes;
      std::ranges::move(report.notes, std::back_inserter(total.notes));
      if (checks == Checks::Verify) verify(model);
    } catch (Error& error) {
      throw error.in(format("pass {}", name));
    }
  }
  return total;
}

}  // namespace quench::passes
