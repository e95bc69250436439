// SPDX-License-Identifier: Apache-2.0
// What labels say of a model before and after it was quantised.
#include "cli/score_both.h"

#include "cli/table.h"

namespace quench::cli {
namespace {

Json scores_of(const EvaluateResult& result) {
  return result.outputs.empty() ? Json::object() : to_json(result.outputs.front());
}

}  // namespace

BeforeAndAfter score_both(const std::string& model, const std::string& quantised,
                          const DataOptions& data, const Context& context) {
  EvaluateOptions options;
  options.data = data;
  Context silent = context;  // what is to be said of the data was said while quantising
  silent.log = nullptr;
  return {evaluate(model, options, silent), evaluate(quantised, options, silent)};
}

Json to_json(const BeforeAndAfter& scores) {
  return {{"samples", scores.before.samples},
          {"before", scores_of(scores.before)},
          {"after", scores_of(scores.after)}};
}

void print_scores(const BeforeAndAfter& scores) {
  if (scores.before.outputs.empty() || scores.after.outputs.empty()) return;
  Table table;
  table.column("metric").column("float", Align::Right).column("quantised", Align::Right);
  const auto& after = scores.after.outputs.front().scores;
  for (const auto& [metric, value] : scores.before.outputs.front().scores) {
    table.row({metric, fixed(value, 2), fixed(after.at(metric), 2)});
  }
  print("\n" + table.text());
  print("on " + grouped(scores.before.samples) +
        " samples with labels, those calibrated with among them\n");
}

}  // namespace quench::cli
