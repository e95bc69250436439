// SPDX-License-Identifier: Apache-2.0
// quench run: one run of a model on given tensors.
#include "quench/run.h"

#include <fmt/format.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/common.h"
#include "cli/errors.h"
#include "cli/json.h"
#include "cli/option_flags.h"
#include "cli/parse.h"
#include "cli/run_samples.h"
#include "cli/table.h"

namespace quench::cli {
namespace {

struct RunFlags {
  std::string model;
  std::string samples;
  DataFlags data;
  std::vector<std::string> inputs;
  std::vector<std::string> shapes;
  std::vector<std::string> taps;
  std::string output_dir;
  Dequantize dequantize = Dequantize::AtLoad;
  Rounding rounding = Rounding::Once;
  CommonFlags common;
};

RunOptions run_options(const RunFlags& flags) {
  RunOptions options{.inputs = {},
                     .shapes = parse_shapes("--shape", flags.shapes),
                     .taps = flags.taps,
                     .output_dir = flags.output_dir,
                     .dequantize = flags.dequantize,
                     .rounding = flags.rounding};
  for (const std::string& item : flags.inputs) {
    const bool named = item.find('=') != std::string::npos;
    const auto [name, source] = named ? parse_pair("--input", item) : std::pair("", item);
    if (!options.inputs.emplace(name, source).second) {
      throw Error(ErrorKind::Usage, fmt::format("--input gives '{}' twice", name));
    }
  }
  return options;
}

Json values_json(const std::vector<RunValue>& values) {
  Json list = Json::array();
  for (const RunValue& value : values) {
    Json item = {{"name", value.name},       {"type", name_of(value.dtype)},
                 {"shape", value.shape},     {"min", number(value.min)},
                 {"max", number(value.max)}, {"mean", number(value.mean)}};
    if (!value.file.empty()) item["file"] = value.file;
    list.push_back(item);
  }
  return list;
}

void print_values(const std::vector<RunValue>& values) {
  Table table;
  table.column("name").column("type").column("shape").column("min", Align::Right);
  table.column("max", Align::Right).column("mean", Align::Right).column("file");
  for (const RunValue& value : values) {
    table.row({value.name, std::string(name_of(value.dtype)), to_string(value.shape),
               fixed(value.min, 6), fixed(value.max, 6), fixed(value.mean, 6), value.file});
  }
  print(table.text());
}

int run_on_samples(const RunFlags& flags) {
  if (!flags.inputs.empty() || !flags.taps.empty() || !flags.output_dir.empty()) {
    throw Error(ErrorKind::Usage,
                "--input, --tap and -o are for one run on tensors; leave them out, or the data "
                "behind the model");
  }
  DataOptions data = data_options(flags.data);
  if (!flags.samples.empty() && !data.path.empty()) {
    throw Error(ErrorKind::Usage, "the data are given twice: behind the model, and by --data");
  }
  if (!flags.samples.empty()) data.path = flags.samples;
  return run_samples(flags.model, data,
                     {.dequantize = flags.dequantize, .rounding = flags.rounding}, flags.common);
}

int run(const RunFlags& flags) {
  if (!flags.samples.empty() || !flags.data.options.given().empty()) return run_on_samples(flags);
  ProgressBar bar;
  const RunOptions options = run_options(flags);
  const auto values = run_model(flags.model, options, make_context(flags.common, bar));
  bar.clear();
  if (flags.common.json) {
    Json json = {{"model", flags.model}, {"values", values_json(values)}};
    if (!flags.output_dir.empty()) json["output_dir"] = flags.output_dir;
    print_json(json);
  } else {
    print_values(values);
  }
  return kOk;
}

}  // namespace

Command setup_run(CLI::App& root) {
  CLI::App* app = add_verb(
      root, "run", "Run a model on images, or once on tensors, writing its outputs as .npy files",
      "quench run model.onnx --input x=x.npy -o out");
  auto flags = std::make_shared<RunFlags>();
  add_model(*app, flags->model);
  app->add_option("samples", flags->samples, "An image, a folder or any file that --data takes")
      ->type_name("DATA");
  app->add_option("--input", flags->inputs,
                  "NAME=a.npy, NAME=a.npz:member, NAME=zeros, NAME=ones or NAME=random:SEED; "
                  "once an input")
      ->allow_extra_args(false)
      ->type_name("NAME=SOURCE");
  app->add_option("--shape", flags->shapes, "Shape of a made-up input, as in x=1,3,224,224")
      ->allow_extra_args(false)
      ->type_name("NAME=DIMS");
  app->add_option("--tap", flags->taps, "Return this value too; repeatable")
      ->allow_extra_args(false)
      ->type_name("NAME");
  app->add_option("-o,--output", flags->output_dir, "Folder for the .npy files and index.json")
      ->type_name("DIR");
  add_data_flags(*app, flags->data);
  add_dequant_flag(*app, flags->dequantize);
  add_rounding_flag(*app, flags->rounding);
  add_common_flags(*app, flags->common, Work::Runs);
  return {app, [flags] { return run(*flags); }};
}

}  // namespace quench::cli
