// SPDX-License-Identifier: Apache-2.0
// quench quantize: a float model and data in, an 8-bit model out.
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/distributed.h"
#include "cli/errors.h"
#include "cli/hints.h"
#include "cli/job_flags.h"
#include "cli/quantize_extras.h"
#include "cli/quantize_report.h"
#include "cli/score_both.h"
#include "quench/formats.h"

namespace quench::cli {
namespace {

int run_quantize(const JobFlags& flags, const QuantizeExtras& extras) {
  refuse_tuning_of_parts(flags.options.given());
  ProgressBar bar;
  const Context context = make_context(flags.common, bar);
  QuantizeOptions options = options_of(flags, for_runtime(target_of_output(extras.out)));
  refuse_idle_options(flags.options.given(), options);
  Outputs outputs;
  if (!context.writes()) outputs.keep_nothing();
  reads_configuration(outputs, flags);
  if (!extras.report_json.empty()) outputs.writes(extras.report_json, "the JSON report");
  options.report_save_path = extras.report;
  if (!extras.target_metric.empty()) {
    const int code =
        quantize_to_target(flags.model, options, extras, context, outputs, flags.common.json);
    if (code == kOk) {
      suggest_after("target", flags.common, {{"model", flags.model}, {"out", extras.out}});
    }
    return code;
  }
  const QuantizeReport report = quantize(flags.model, extras.out, options, context, outputs);
  Json json = to_json(report);
  if (!context.writes()) return kOk;
  if (!extras.report_json.empty()) write_json(json, extras.report_json, outputs);
  outputs.commit();
  bar.clear();
  for (const std::string& warning : report.warnings) context.warn(warning);
  if (!options.data.labels.empty()) {
    const BeforeAndAfter scores =
        score_both(flags.model, extras.out, options.data, context.alone());
    bar.clear();
    json["scores"] = to_json(scores);
    if (!flags.common.json) {
      print_report(report);
      print_scores(scores);
    }
  } else if (!flags.common.json) {
    print_report(report);
  }
  if (flags.common.json) print_json(json);
  suggest_after("quantize", flags.common,
                {{"model", flags.model}, {"out", extras.out}, {"report", extras.report}});
  return kOk;
}

}  // namespace

Command setup_quantize(CLI::App& root) {
  CLI::App* app = add_verb(root, "quantize", "Turn a float model into an 8-bit one",
                           "quench quantize model.onnx -o int8.onnx --data images.npy");
  auto flags = std::make_shared<JobFlags>();
  auto extras = std::make_shared<QuantizeExtras>();
  app->add_option("-o,--output", extras->out, "Where to write the quantised model")
      ->required()
      ->type_name("FILE");
  add_extra_flags(*app, *extras);
  add_job_flags(*app, *flags, kForQuantize);
  add_tensor_parallel_flag(*app)->excludes("--target-metric");
  return {app, [flags, extras] { return run_quantize(*flags, *extras); }};
}

}  // namespace quench::cli
