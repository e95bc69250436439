// SPDX-License-Identifier: Apache-2.0
// The list of techniques.
#include <vector>

#include "base/share.h"
#include "tune/technique.h"

namespace quench {
namespace tune {
namespace {

const std::vector<Technique>& techniques() {
  static const std::vector<Technique> all = {
#define QUENCH_TECHNIQUE(name) name(),
#include "tune/techniques.inc"
#undef QUENCH_TECHNIQUE
  };
  return all;
}

}  // namespace

void apply(Stage stage, State& state) {
  // They hold whole layers against each other, of which no process of a split model has all.
  if (shards(state.context) != nullptr) return;
  for (const Technique& technique : techniques()) {
    if (technique.stage != stage) continue;
    state.context.check_cancelled();
    technique.apply(state);
  }
}

}  // namespace tune

std::vector<TechniqueInfo> all_techniques() {
  std::vector<TechniqueInfo> rows;
  for (const tune::Technique& each : tune::techniques()) rows.push_back(each.info);
  return rows;
}

}  // namespace quench
