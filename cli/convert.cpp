// SPDX-License-Identifier: Apache-2.0
// quench convert: the command lines of converter_lite.
#include <fmt/format.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/common.h"
#include "cli/errors.h"
#include "cli/quantize_report.h"
#include "cli/table.h"
#include "quench/converter_lite.h"
#include "quench/formats.h"
#include "quench/jobs.h"

namespace quench::cli {
namespace {

struct ConvertFlags {
  ConverterFlags given;  ///< by name, without the dashes
  CommonFlags common;
};

/// Reads and writes; what there is to report is the size.
QuantizeReport copy_model(const std::string& from, const std::string& to,
                          const QuantizeOptions& options, Outputs& outputs) {
  reads_model(outputs, from, "the model");
  writes_model(outputs, to, "the result");
  Model model = load(from);
  set_input_shapes(model, options.input_shapes);
  QuantizeReport report;
  report.bytes_before = inspect(from).bytes_on_disk;
  report.bytes_after = static_cast<std::int64_t>(save(model, to, {}, outputs));
  report.warnings = options.notes;
  return report;
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
    print("not quantised: no configuration file names a quant_type\n");
  }
  print(fmt::format("{}: {} from {}\n", out, human_bytes(report.bytes_after),
                    human_bytes(report.bytes_before)));
  print("CONVERT RESULT SUCCESS:0\n");
}

int run_convert(const ConvertFlags& flags) {
  const QuantizeOptions options = converter_options(flags.given);
  const std::string out = converter_output(flags.given, options);
  const std::string& model = flags.given.at("modelFile");
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
    report = options.type == QuantType::None ? copy_model(model, out, options, outputs)
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
  return kOk;
}

}  // namespace

Command setup_convert(CLI::App& root) {
  CLI::App* app = add_verb(root, "convert", "Take a command line of converter_lite",
                           "quench convert --fmk=ONNX --modelFile=model.onnx --outputFile=copy");
  auto flags = std::make_shared<ConvertFlags>();
  for (const ConverterFlag& flag : converter_flags()) {
    app->add_option(fmt::format("--{}", flag.name), flags->given[std::string(flag.name)],
                    std::string(flag.help))
        ->required(flag.required)
        ->type_name(std::string(flag.value));
  }
  add_common_flags(*app, flags->common, Work::Runs);
  return {app, [flags] { return run_convert(*flags); }};
}

}  // namespace quench::cli
