// SPDX-License-Identifier: Apache-2.0
// quench quantize: a float model and data in, an 8-bit model out.
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/flag_scopes.h"
#include "cli/quantize_extras.h"
#include "cli/quantize_flags.h"
#include "cli/quantize_report.h"

namespace quench::cli {
namespace {

int run_quantize(const CLI::App& app, const QuantizeFlags& flags, const QuantizeExtras& extras,
                 const std::string& report_path) {
  ProgressBar bar;
  const Context context = make_context(flags.common, bar);
  QuantizeOptions options = options_of(flags);
  refuse_idle_flags(app, options);
  Outputs outputs;
  reads_configuration(outputs, flags);
  if (!report_path.empty()) outputs.writes(report_path, "the JSON report");
  if (!extras.report.empty()) writes_report(outputs, extras.report);
  if (!extras.debug_info.empty()) options.debug_info_save_path = extras.debug_info;
  if (!extras.target_metric.empty()) {
    return quantize_to_target(flags.model, flags.out, options, extras, context, outputs);
  }
  const QuantizeReport report = quantize(flags.model, flags.out, options, context, outputs);
  if (!report.activation_observer.empty()) {
    options.config.value_observers = report.value_observers;
  }
  write_extras(flags.model, options, extras, context, outputs);
  const Json json = to_json(report);
  if (!report_path.empty()) write_json(json, report_path, outputs);
  outputs.commit();
  bar.clear();
  for (const std::string& warning : report.warnings) context.warn(warning);
  if (flags.common.json) {
    print_json(json);
  } else {
    print_report(report);
  }
  return kOk;
}

}  // namespace

Command setup_quantize(CLI::App& root) {
  CLI::App* app = add_verb(root, "quantize", "Turn a float model into an 8-bit one",
                           "quench quantize model.onnx -o int8.onnx --data images.npy");
  auto flags = std::make_shared<QuantizeFlags>();
  auto extras = std::make_shared<QuantizeExtras>();
  auto report = std::make_shared<std::string>();
  add_shared_flags(*app, *flags, "Where to write the quantised model");
  add_quantize_flags(*app, *flags);
  add_extra_flags(*app, *extras);
  app->add_option("--report-json", *report, "Write the report as JSON too")->type_name("FILE");
  return {app,
          [app, flags, extras, report] { return run_quantize(*app, *flags, *extras, *report); }};
}

}  // namespace quench::cli
