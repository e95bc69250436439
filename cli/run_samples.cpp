// SPDX-License-Identifier: Apache-2.0
// quench run MODEL DATA: what a model says of images or other samples.
#include "cli/run_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "cli/errors.h"
#include "cli/json.h"
#include "cli/table.h"

namespace quench::cli {
namespace {

constexpr std::size_t kShown = 5;

/// Class scores: a row of at least two numbers, and nothing else.
bool is_scores(const Tensor& output) {
  return output.rank() == 2 && output.shape()[0] == 1 && output.shape()[1] > 1 &&
         info(output.dtype()).is_float;
}

/// Indices of the highest, the highest first.
std::vector<std::size_t> highest(const std::vector<float>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const std::size_t shown = std::min(kShown, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(shown), order.end(),
                    [&](std::size_t a, std::size_t b) { return values[a] > values[b]; });
  order.resize(shown);
  return order;
}

Json value_json(const Tensor& output) {
  Json json = {{"type", name_of(output.dtype())}, {"shape", output.shape()}};
  if (!is_scores(output)) return json;
  const std::vector<float> values = to_float(output);
  json["highest"] = Json::array();
  for (const std::size_t index : highest(values)) {
    json["highest"].push_back({{"index", index}, {"value", number(values[index])}});
  }
  return json;
}

std::string value_text(const Tensor& output) {
  if (!is_scores(output)) {
    return fmt::format("{} {}", name_of(output.dtype()), to_string(output.shape()));
  }
  const std::vector<float> values = to_float(output);
  std::string text;
  for (const std::size_t index : highest(values)) {
    text += fmt::format("{}{}: {:.4g}", text.empty() ? "" : ", ", index, values[index]);
  }
  return text;
}

}  // namespace

int run_samples(const std::string& model, const DataOptions& data, const SessionOptions& options,
                const CommonFlags& flags) {
  ProgressBar bar;
  const Context context = make_context(flags, bar);
  Session session(load(model), options, context);
  const auto source = open_data(data, session.inputs(), context);
  Table table;
  table.column("sample").column("label").column("output").column("value (highest first)");
  Json json = {{"model", model}, {"samples", Json::array()}};
  for (std::int64_t i = 0; i < source->size(); ++i) {
    context.check_cancelled();
    context.report("run", i, source->size());
    const Sample sample = source->read(i);
    Json outputs = Json::object();
    for (const auto& [name, output] : session.run(sample.inputs)) {
      const std::string label = sample.label < 0 ? "-" : std::to_string(sample.label);
      table.row({sample.name, label, name, value_text(output)});
      outputs[name] = value_json(output);
    }
    json["samples"].push_back({{"name", sample.name}, {"outputs", outputs}});
    if (sample.label >= 0) json["samples"].back()["label"] = sample.label;
  }
  bar.clear();
  if (flags.json) {
    print_json(json);
  } else {
    print(table.text());
  }
  return kOk;
}

}  // namespace quench::cli
