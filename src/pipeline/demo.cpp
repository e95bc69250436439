// SPDX-License-Identifier: Apache-2.0
// Scores and times models on the same data, one row each.
#include "base/format.h"
#include "quench/evaluate.h"

namespace quench {

std::vector<DemoRow> demo(const DemoOptions& options, const Context& context) {
  if (options.models.empty()) fail(ErrorKind::Usage, "the demo needs a model: give --model PATH");
  std::vector<DemoRow> rows;
  for (const std::string& path : options.models) {
    DemoRow row{.model = path, .scores = {}, .timing = {}};
    row.bytes_on_disk = inspect(path).bytes_on_disk;
    const EvaluateResult scored = evaluate(path, options.evaluate, context);
    row.samples = scored.samples;
    row.scores = scored.outputs.front().scores;
    row.timing = bench(path, options.bench, context);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace quench
