// SPDX-License-Identifier: Apache-2.0
// Flags that mean the same in every verb, and the Context they make.
#include "cli/common.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "cli/distributed.h"
#include "quench/cpu.h"
#include "quench/error.h"
#include "quench/formats.h"

namespace quench::cli {
namespace {

std::vector<std::string> isa_names() {
  std::vector<std::string> names;
  for (const Isa isa : all_isas()) names.emplace_back(to_string(isa));
  return names;
}

void add_device_flags(CLI::App& app, CommonFlags& flags) {
  for_experts(app.add_option("--device", flags.device, "Where models run: cpu, cuda or cuda:1"))
      ->type_name("NAME");
  for_experts(
      app.add_option("--precision", flags.precision, "What a GPU computes in: float, tf32 or half"))
      ->check(CLI::IsMember({"float", "tf32", "half"}))
      ->type_name("NAME");
}

void add_rank_flags(CLI::App& app, CommonFlags& flags) {
  CLI::Option* distributed = for_experts(
      app.add_flag("--distributed", flags.distributed,
                   "Share the work with the other processes of quench launch, torchrun, MPI or "
                   "Slurm"));
  for_experts(app.add_option("--rank-timeout", flags.rank_timeout,
                             "Seconds to wait for a process that does not come or is silent"))
      ->check(CLI::PositiveNumber)
      ->needs(distributed)
      ->type_name("SECONDS");
}

}  // namespace

void add_elastic_flag(CLI::App& app, CommonFlags& flags) {
  for_experts(app.add_flag("--elastic", flags.elastic,
                           "Where a process other than the first dies, the others do its share"))
      ->needs(app.get_option("--distributed"));
}

namespace {

/// CLI11's own sentence lists all of its units.
CLI::Validator size_value() {
  return {[](std::string& text) {
            const std::string given = text;
            try {
              (void)CLI::AsSizeValue(true)(text);
              return std::string();
            } catch (const CLI::Error&) {
            }
            return fmt::format("expected a number of MB or GB, as in 900MB or 8GB; got '{}'",
                               given);
          },
          ""};
}

/// As one of several processes.
void join_others(const CommonFlags& flags, Context& context) {
  LaunchedRank launched = launched_by_environment();
  launched.ranks.elastic = flags.elastic;
  launched.ranks.tensor_parallel = tensor_parallel();
  if (flags.rank_timeout > 0) launched.ranks.timeout_seconds = flags.rank_timeout;
  quench::take_place(launched, context);
  context.ranks = join_process(launched.ranks, context, flags.quiet);
}

void set_ceiling(const CommonFlags& flags, Context& context) {
  constexpr std::uint64_t kMB = 1'000'000;
  constexpr std::uint64_t kLeast = 50;  // below that the program itself does not fit
  constexpr std::uint64_t kMost = 1'000'000'000;
  if (flags.device != "cpu") {
    throw Error(ErrorKind::Usage, "--max-memory is about the CPU's memory; leave out --device");
  }
  if (flags.max_memory / kMB < kLeast || flags.max_memory / kMB > kMost) {
    throw Error(
        ErrorKind::Usage,
        fmt::format("--max-memory takes 50MB and more, as in 8GB; got {} bytes", flags.max_memory));
  }
  context.max_memory_mb = static_cast<int>(flags.max_memory / kMB);
}

/// Set once, before anything runs.
std::string& typed() {
  static std::string text;
  return text;
}

}  // namespace

void remember_command(int argc, char** argv) {
  constexpr const char* kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./,:=+@%";
  std::string text = "quench";
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool plain = !word.empty() && word.find_first_not_of(kPlain) == std::string::npos;
    std::string quoted;
    for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    text += plain ? " " + word : " '" + quoted + "'";
  }
  typed() = std::move(text);
}

const std::string& typed_command() { return typed(); }

void add_common_flags(CLI::App& app, CommonFlags& flags, Work work) {
  app.add_flag("--json", flags.json, "Print one JSON object on stdout");
  app.add_flag("-q,--quiet", flags.quiet, "No progress and no warnings");
  if (work == Work::Reads) return;
  app.add_flag("-v,--verbose", flags.verbose, "Log what is done on stderr");
  app.add_option("--threads", flags.threads, "Threads; 0 means one for each core")
      ->check(CLI::Range(0, 1024))
      ->type_name("N");
  for_experts(app.add_option(
                  "--max-isa", flags.max_isa,
                  "Use no better instruction set of this machine than this, to see what it gains"))
      ->check(CLI::IsMember(isa_names()))
      ->type_name("NAME");
  for_experts(app.add_option("--seed", flags.seed, "Seed of everything random"))->type_name("N");
  if (work != Work::Converts) {
    add_device_flags(app, flags);
    for_experts(app.add_option("--max-memory", flags.max_memory,
                               "Memory to stay under, as 900MB or 8GB: weights stream from their "
                               "file, batches shrink"))
        ->transform(size_value())
        ->type_name("SIZE");
  }
  if (work == Work::Shares) add_rank_flags(app, flags);
}

CLI::Option* add_model(CLI::App& app, std::string& path) {
  CLI::Option* model = app.add_option("model", path, "Model file, or the folder of a Paddle model");
  model->required()->type_name("MODEL");
  struct Names {
    std::string model, params;
  };
  const auto names = std::make_shared<Names>();
  for_experts(
      app.add_option("--model-filename", names->model, "The program in MODEL, which is a folder"))
      ->type_name("NAME");
  for_experts(app.add_option("--params-filename", names->params,
                             "The file of parameters beside the program"))
      ->type_name("NAME");
  app.parse_complete_callback(
      [&path, names] { path = model_path(path, names->model, names->params); });
  return model;
}

void add_dequant_flag(CLI::App& app, Dequantize& value) {
  for_experts(app.add_option_function<std::string>(
                  "--dequant",
                  [&value](const std::string& word) {
                    value = word == "on-the-fly" ? Dequantize::OnTheFly : Dequantize::AtLoad;
                  },
                  "When quantised weights become floats: at-load, or on-the-fly, which saves "
                  "memory"))
      ->check(CLI::IsMember({"at-load", "on-the-fly"}))
      ->type_name("WHEN");
}

void add_rounding_flag(CLI::App& app, Rounding& value) {
  for_experts(app.add_option_function<std::string>(
                  "--rounding",
                  [&value](const std::string& word) {
                    value = word == "twice" ? Rounding::Twice : Rounding::Once;
                  },
                  "How convolutions on integers round: once, or twice, as LiteRT's reference "
                  "kernels do, which is slow"))
      ->check(CLI::IsMember({"once", "twice"}))
      ->type_name("HOW");
}

CLI::App* add_verb(CLI::App& root, const char* name, const char* summary, const char* example) {
  CLI::App* app = root.add_subcommand(name, summary);
  const bool less = !shows_all_flags();
  app->set_help_all_flag("--help-all", "Every option, also those for experts");
  app->footer(std::string(less ? "--help-all lists more options.\n\n" : "") + "Example:\n  " +
              example);
  return app;
}

Context make_context(const CommonFlags& flags, ProgressBar& bar) {
  Context context;
  if (!flags.max_isa.empty()) set_max_isa(isa_named(flags.max_isa));
  context.threads = flags.threads;
  context.seed = flags.seed;
  context.device = flags.device;
  if (flags.max_memory > 0) set_ceiling(flags, context);
  context.precision = flags.precision;
  context.cancel = watch_interrupts();
  if (flags.distributed) join_others(flags, context);
  const bool speaks = !context.ranks || context.ranks->rank() == 0;
  if (flags.quiet || !speaks) return context;
  context.progress = [&bar](const Progress& progress) { bar.update(progress); };
  context.log = [&bar, verbose = flags.verbose](LogLevel level, std::string_view line) {
    if (verbose || level == LogLevel::Warning) bar.log(level, line);
  };
  return context;
}

}  // namespace quench::cli
