// SPDX-License-Identifier: Apache-2.0
// quench lint: which nodes of a quantised model a runtime will really run on integers.
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <memory>

#include "cli/commands.h"
#include "cli/common.h"
#include "cli/errors.h"
#include "cli/json.h"
#include "cli/table.h"
#include "quench/formats.h"
#include "quench/quant_config.h"

namespace quench::cli {
namespace {

struct LintFlags {
  std::string model;
  std::string target;
  CommonFlags common;
};

int run(LintFlags flags) {
  if (flags.target.empty()) {
    const std::string own = target_of_model(flags.model);
    flags.target = own.empty() ? "onnxruntime" : own;
  }
  Model model = load(flags.model);
  ProgressBar bar;
  const Context context = make_context(flags.common, bar);
  for (const std::string& note : infer_types(model)) context.warn(note);
  const std::vector<LintLine> lines = lint(model, flags.target);
  const auto integers = std::ranges::count(lines, true, &LintLine::integer);
  if (flags.common.json) {
    Json json = {{"target", flags.target}, {"integer_nodes", integers}};
    json["nodes"] = Json::array();
    for (const LintLine& line : lines) {
      json["nodes"].push_back({{"node", line.node},
                               {"op_type", line.op_type},
                               {"integer", line.integer},
                               {"reason", line.reason}});
    }
    print_json(json);
    return kOk;
  }
  Table table;
  table.column("node").column("runs on").column("why");
  for (const LintLine& line : lines) {
    table.row({line.node, line.integer ? "integers" : "float", line.reason});
  }
  print(table.text());
  print("\n" + grouped(integers) + " of " + grouped(static_cast<std::int64_t>(lines.size())) +
        " nodes run on integers in " + flags.target + "\n");
  return kOk;
}

}  // namespace

Command setup_lint(CLI::App& root) {
  CLI::App* app = add_verb(root, "lint", "Tell which nodes a runtime will run on integers, and why",
                           "quench lint model.onnx --target onnxruntime");
  auto flags = std::make_shared<LintFlags>();
  add_model(*app, flags->model);
  app->add_option("--target", flags->target,
                  "Runtime; default: tflite and paddle for their own models, else onnxruntime")
      ->type_name("NAME");
  add_common_flags(*app, flags->common, Work::Reads);
  return {app, [flags] { return run(*flags); }};
}

}  // namespace quench::cli
