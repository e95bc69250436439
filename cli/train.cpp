// SPDX-License-Identifier: Apache-2.0
// quench train: quantisation in the loop, with labels or by distilling the float model.
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <filesystem>
#include <memory>

#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/hints.h"
#include "cli/job_flags.h"
#include "cli/quantize_report.h"
#include "quench/formats.h"
#include "quench/jobs.h"
#include "quench/training_defaults.h"

namespace quench::cli {
namespace {

struct TrainFlags {
  JobFlags job;
  std::string out;
  std::string report;
};

int run_train(const TrainFlags& flags) {
  ProgressBar bar;
  const Context context = make_context(flags.job.common, bar);
  QuantizeOptions options =
      options_of(flags.job, for_runtime(target_of_output(flags.out), training_defaults()));
  options.type = QuantType::Full;
  TrainingOptions& training = options.training;
  choose_training_length(training);
  refuse_idle_options(flags.job.options.given(), options);
  const bool own_checkpoint = training.checkpoint.empty();
  if (own_checkpoint) training.checkpoint = flags.out + ".checkpoint";
  Outputs outputs;
  reads_configuration(outputs, flags.job);
  outputs.may_write(training.checkpoint, "the checkpoint");
  options.report_save_path = flags.report;
  const QuantizeReport report = quantize(flags.job.model, flags.out, options, context, outputs);
  outputs.commit();
  // What was trained lies in the output now.
  if (own_checkpoint && context.writes()) std::filesystem::remove(training.checkpoint);
  bar.clear();
  for (const std::string& warning : report.warnings) context.warn(warning);
  if (flags.job.common.json) {
    print_json(to_json(report));
  } else {
    print_report(report);
  }
  suggest_after("train", flags.job.common,
                {{"model", flags.job.model},
                 {"out", flags.out},
                 {"data", options.data.path},
                 {"report", flags.report}});
  return kOk;
}

}  // namespace

Command setup_train(CLI::App& root) {
  CLI::App* app = add_verb(root, "train", "Train a model with quantisation in the loop",
                           "quench train model.onnx -o int4.onnx --data images.npy --weight-bits 4 "
                           "--epochs 20");
  auto flags = std::make_shared<TrainFlags>();
  app->add_option("-o,--output", flags->out, "Where to write the quantised model")
      ->required()
      ->type_name("FILE");
  app->add_option("--report", flags->report,
                  "Write an HTML report of the training curve, layers, ranges and errors")
      ->type_name("HTML");
  add_job_flags(*app, flags->job, kForTrain, training_defaults());
  return {app, [flags] { return run_train(*flags); }};
}

}  // namespace quench::cli
