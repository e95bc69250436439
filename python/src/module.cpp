// SPDX-License-Identifier: Apache-2.0
// The module that the Python package `quench` stands on.
#include <cstdlib>

#include "python/src/bindings.h"
#include "python/src/results.h"
#include "python/src/tensors.h"
#include "quench/metrics.h"
#include "quench/quant_config.h"
#include "quench/statistics.h"

namespace {

/// As the program does, before the engine reads it: threads that spin for milliseconds stall
/// others.
void spin_briefly() {
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) (void)::setenv("GOMP_SPINCOUNT", "1000", 0);
}

template <typename Infos>
std::vector<std::string> names_in(const Infos& infos) {
  std::vector<std::string> names;
  for (const auto& each : infos) names.emplace_back(each.name);
  return names;
}

}  // namespace

PYBIND11_MODULE(_quench, module) {
  using namespace quench::python;  // NOLINT: the parts of this very module
  spin_briefly();
  module.attr("__version__") = QUENCH_VERSION;
  bind_errors(module);
  bind_tensors(module);
  bind_results(module);
  bind_models(module);
  bind_session(module);
  bind_jobs(module);
  bind_scoring(module);
  bind_analyze(module);
  bind_paddleslim(module);
  module.def(
      "metrics", [] { return names_in(quench::all_metrics()); }, "Names of the metrics");
  module.def(
      "observers", [] { return names_in(quench::all_observers()); }, "Names of the observers");
  module.def(
      "targets", [] { return names_in(quench::all_targets()); }, "Names of the runtimes");
  module.def("_options", &option_rows, "The table of options, for stubs and tests");
}
