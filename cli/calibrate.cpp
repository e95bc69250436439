// SPDX-License-Identifier: Apache-2.0
// quench calibrate: activation statistics into a file, for quench quantize --stats.
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <charconv>
#include <memory>

#include "cli/commands.h"
#include "cli/distributed.h"
#include "cli/errors.h"
#include "cli/hints.h"
#include "cli/job_flags.h"
#include "quench/formats.h"
#include "quench/jobs.h"

namespace quench::cli {
namespace {

struct CalibrateFlags {
  JobFlags shared;
  std::string out;
  std::string shard;
  CalibrateOptions how;
};

/// "3/64"
void read_shard(const std::string& text, CalibrateOptions& how) {
  const auto number = [&](std::size_t from, std::size_t to, std::int64_t& value) {
    const char* end = text.data() + to;
    const auto [stop, error] = std::from_chars(text.data() + from, end, value);
    return error == std::errc() && stop == end;
  };
  const std::size_t slash = text.find('/');
  const bool good = slash != std::string::npos && number(0, slash, how.shard) &&
                    number(slash + 1, text.size(), how.shards);
  if (good && how.shard >= 1 && how.shard <= how.shards) return;
  throw Error(ErrorKind::Usage, "--shard is '" + text + "'; expected a part and their number, as " +
                                    "3/64; parts are counted from 1");
}

int run_calibrate(const CalibrateFlags& flags) {
  CalibrateOptions how = flags.how;
  if (!flags.shard.empty()) read_shard(flags.shard, how);
  ProgressBar bar;
  const Context context = make_context(flags.shared.common, bar);
  const QuantizeOptions options =
      options_of(flags.shared, for_runtime(target_of_model(flags.shared.model)));
  Outputs outputs;
  reads_configuration(outputs, flags.shared);
  calibrate_model(flags.shared.model, flags.out, options, context, how, outputs);
  outputs.commit();
  bar.clear();
  for (const std::string& note : options.notes) context.warn(note);
  suggest_after("calibrate", flags.shared.common,
                {{"model", flags.shared.model}, {"out", flags.out}});
  return kOk;
}

}  // namespace

Command setup_calibrate(CLI::App& root) {
  CLI::App* app = add_verb(root, "calibrate", "Collect activation statistics for quantize --stats",
                           "quench calibrate model.onnx -o model.stats --data images.npy");
  auto flags = std::make_shared<CalibrateFlags>();
  app->add_option("-o,--output", flags->out, "Where to write the statistics")
      ->required()
      ->type_name("FILE");
  add_job_flags(*app, flags->shared, kForCalibrate);
  add_elastic_flag(*app, flags->shared.common);
  add_tensor_parallel_flag(*app)->excludes("--elastic");
  app->add_flag("--resume", flags->how.resume,
                "Go on from FILE.partial, which a run that was stopped left behind");
  app->add_option("--snapshot-every", flags->how.snapshot_seconds,
                  "Seconds between writing FILE.partial")
      ->check(CLI::NonNegativeNumber)
      ->type_name("SECONDS");
  app->add_option(
         "--shard", flags->shard,
         "Only this part of the samples, as 3/64; quantize --stats takes all parts, in order")
      ->excludes("--distributed")
      ->type_name("PART/PARTS");
  return {app, [flags] { return run_calibrate(*flags); }};
}

}  // namespace quench::cli
