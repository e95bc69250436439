// SPDX-License-Identifier: Apache-2.0
// quench convert: a model in another format; and the command lines of converter_lite.
#include <fmt/format.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/common.h"
#include "cli/errors.h"
#include "cli/hints.h"
#include "cli/quantize_report.h"
#include "cli/table.h"
#include "quench/converter_lite.h"
#include "quench/formats.h"
#include "quench/jobs.h"

namespace quench::cli {
namespace {

struct ConvertFlags {
  std::string model;  ///< empty: a command line of converter_lite
  std::string out;
  ConverterFlags given;  ///< by name, without the dashes
  CommonFlags common;
};

/// Reads and writes; what there is to report is the size.
QuantizeReport copy_model(const std::string& from, const std::string& to,
                          const QuantizeOptions& options, const ConverterFlags& flags,
                          Outputs& outputs) {
  reads_model(outputs, from, "the model");
  writes_model(outputs, to, "the result");
  Model model = load(from);
  set_input_shapes(model, options.input_shapes);
  edit_model(model, flags);
  QuantizeReport report;
  report.bytes_before = inspect(from).bytes_on_disk;
  report.bytes_after = static_cast<std::int64_t>(save(model, to, {}, outputs));
  report.warnings = options.notes;
  return report;
}

void print_sizes(const std::string& out, const QuantizeReport& report) {
  print(fmt::format("{}: {} from {}\n", out, human_bytes(report.bytes_after),
                    human_bytes(report.bytes_before)));
}

void tell(const ConvertFlags& flags, const QuantizeOptions& options, const std::string& out,
          const QuantizeReport& report) {
  const bool quantised = options.type != QuantType::None;
  if (flags.common.json) {
    Json json = {{"model", flags.given.at("modelFile")}, {"out", out}, {"quantised", quantised}};
    json.update(quantised ? to_json(report)
                          : Json{{"bytes_before", report.bytes_before},
                                 {"bytes_after", report.bytes_after},
                                 {"warnings", report.warnings}});
    return print_json(json);
  }
  if (quantised) {
    print_report(report);
    print("\n");
  } else {
    print("converted as it is: no configuration file names a quant_type\n");
  }
  print_sizes(out, report);
  print("CONVERT RESULT SUCCESS:0\n");
}

/// Ours: what is read is written in the format that the output's name asks for.
int run_plain(const ConvertFlags& flags) {
  if (flags.out.empty()) throw Error(ErrorKind::Usage, "convert MODEL needs -o FILE");
  for (const auto& [name, value] : flags.given) {
    if (value.empty()) continue;
    throw Error(ErrorKind::Usage,
                fmt::format("--{} is a flag of converter_lite, which takes --modelFile", name));
  }
  Outputs outputs;
  const QuantizeReport report = copy_model(flags.model, flags.out, {}, {}, outputs);
  outputs.commit();
  if (flags.common.json) {
    print_json({{"model", flags.model},
                {"out", flags.out},
                {"bytes_before", report.bytes_before},
                {"bytes_after", report.bytes_after}});
  } else {
    print_sizes(flags.out, report);
  }
  suggest_after("convert", flags.common, {{"out", flags.out}});
  return kOk;
}

void expect_required(const ConvertFlags& flags) {
  for (const ConverterFlag& flag : converter_flags()) {
    if (!flag.required || !flags.given.at(std::string(flag.name)).empty()) continue;
    throw Error(ErrorKind::Usage, fmt::format("--{} is required, or MODEL and -o", flag.name));
  }
}

int run_convert(const ConvertFlags& flags) {
  if (!flags.model.empty()) return run_plain(flags);
  expect_required(flags);
  const QuantizeOptions options = converter_options(flags.given);
  const std::string out = converter_output(flags.given, options);
  const std::string model = converter_model(flags.given);
  ProgressBar bar;
  Context context = make_context(flags.common, bar);
  if (context.log) {
    context.log = [log = context.log](LogLevel level, std::string_view line) {
      log(level, in_converter_words(line));
    };
  }
  QuantizeReport report;
  Outputs outputs;
  outputs.reads(flags.given.at("configFile"), "the settings");
  try {
    report = options.type == QuantType::None ? copy_model(model, out, options, flags.given, outputs)
                                             : quantize(model, out, options, context, outputs);
    outputs.commit();
  } catch (const Error& error) {
    throw Error(error.kind(), in_converter_words(error.what()));
  }
  bar.clear();
  for (std::string& warning : report.warnings) {
    context.warn(warning);
    warning = in_converter_words(warning);
  }
  tell(flags, options, out, report);
  suggest_after("convert", flags.common, {{"out", out}});
  return kOk;
}

}  // namespace

Command setup_convert(CLI::App& root) {
  CLI::App* app = add_verb(root, "convert",
                           "Write a model in another format, or take a command line of "
                           "converter_lite",
                           "quench convert --fmk=ONNX --modelFile=model.onnx --outputFile=copy");
  auto flags = std::make_shared<ConvertFlags>();
  add_model(*app, flags->model)->required(false);
  app->add_option("-o,--output", flags->out, "The file; its name says the format")
      ->type_name("FILE");
  for (const ConverterFlag& flag : converter_flags()) {
    app->add_option(fmt::format("--{}", flag.name), flags->given[std::string(flag.name)],
                    std::string(flag.help))
        ->type_name(std::string(flag.value));
  }
  add_common_flags(*app, flags->common, Work::Converts);
  return {app, [flags] { return run_convert(*flags); }};
}

}  // namespace quench::cli
