// SPDX-License-Identifier: Apache-2.0
// The list of techniques.
#include <vector>

#include "tune/technique.h"

namespace quench::tune {

std::span<const Technique> all_techniques() {
  static const std::vector<Technique> all = {
#define QUENCH_TECHNIQUE(name) name(),
#include "tune/techniques.inc"
#undef QUENCH_TECHNIQUE
  };
  return all;
}

void apply(Stage stage, State& state) {
  for (const Technique& technique : all_techniques()) {
    if (technique.stage != stage) continue;
    state.context.check_cancelled();
    technique.apply(state);
  }
}

}  // namespace quench::tune
