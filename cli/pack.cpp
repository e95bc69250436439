// SPDX-License-Identifier: Apache-2.0
// quench pack and quench unpack: models to packed files and back, without loss.
#include "quench/pack.h"

#include <fmt/format.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/common.h"
#include "cli/errors.h"
#include "cli/hints.h"
#include "cli/json.h"
#include "cli/table.h"
#include "quench/evaluate.h"
#include "quench/formats.h"
#include "quench/model.h"

namespace quench::cli {
namespace {

struct PackFlags {
  std::string model;
  std::string out;
  bool plain = false;
  bool external = false;
  CommonFlags common;
};

void check_suffix(const std::string& out, const char* suffix, const char* other) {
  if (out.ends_with(suffix)) return;
  throw Error(ErrorKind::Usage,
              fmt::format("-o takes a file that ends in {}; got '{}' ({})", suffix, out, other));
}

void check_files(const PackFlags& flags) {
  Outputs outputs;
  reads_model(outputs, flags.model, "the model");
  writes_model(outputs, flags.out, "the result");
}

std::string percent(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? ""
                    : fmt::format("{:.1f} %",
                                  100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

void print_summary(const PackSummary& summary, std::int64_t before) {
  Table table;
  table.column("coding").column("streams", Align::Right).column("unpacked", Align::Right);
  table.column("stored", Align::Right).column("share", Align::Right);
  for (const PackedCoding& row : summary.codings) {
    table.row({row.name, grouped(row.streams), human_bytes(row.bytes), human_bytes(row.stored),
               percent(row.stored, row.bytes)});
  }
  print(table.text());
  print(fmt::format("\n{} of {}: {}\n", human_bytes(summary.bytes), human_bytes(before),
                    percent(summary.bytes, before)));
}

int run_pack(const PackFlags& flags) {
  check_suffix(flags.out, ".qnch", "quench unpack writes .onnx");
  check_files(flags);
  const std::int64_t before = inspect(flags.model).bytes_on_disk;
  save(load(flags.model), flags.out, {.encode = !flags.plain});
  const PackSummary summary = describe_packed(flags.out);
  if (flags.common.json) {
    Json json = {{"model", flags.model},
                 {"out", flags.out},
                 {"bytes_before", before},
                 {"bytes", summary.bytes},
                 {"codings", Json::object()}};
    for (const PackedCoding& row : summary.codings) {
      json["codings"][row.name] = {
          {"streams", row.streams}, {"bytes", row.bytes}, {"stored", row.stored}};
    }
    print_json(json);
  } else {
    print_summary(summary, before);
  }
  suggest_after("pack", flags.common, {{"out", flags.out}});
  return kOk;
}

int run_unpack(const PackFlags& flags) {
  if (flags.out.ends_with(".qnch") || flags.external) {
    check_suffix(flags.out, ".onnx",
                 flags.external ? "--external is for ONNX files" : "quench pack writes .qnch");
  }
  check_files(flags);
  const PackSummary summary = describe_packed(flags.model);
  using Data = SaveOptions::Data;
  save(load(flags.model), flags.out, {.data = flags.external ? Data::External : Data::AsRead});
  const std::int64_t after = inspect(flags.out).bytes_on_disk;
  if (flags.common.json) {
    print_json({{"model", flags.model},
                {"out", flags.out},
                {"bytes_before", summary.bytes},
                {"bytes", after}});
  } else {
    print(fmt::format("{} from {}\n", human_bytes(after), human_bytes(summary.bytes)));
  }
  return kOk;
}

}  // namespace

Command setup_pack(CLI::App& root) {
  CLI::App* app = add_verb(root, "pack", "Store a model in as few bytes as its numbers need",
                           "quench pack model.onnx -o model.qnch");
  auto flags = std::make_shared<PackFlags>();
  add_model(*app, flags->model);
  app->add_option("-o,--out", flags->out, "Packed file, .qnch")->required()->type_name("FILE");
  app->add_flag("--no-encode", flags->plain, "Bit-pack tensors, but do not compress them");
  add_common_flags(*app, flags->common, Work::Reads);
  return {app, [flags] { return run_pack(*flags); }};
}

Command setup_unpack(CLI::App& root) {
  CLI::App* app = add_verb(root, "unpack", "Turn a packed file back into the model it holds",
                           "quench unpack model.qnch -o model.onnx");
  auto flags = std::make_shared<PackFlags>();
  app->add_option("model", flags->model, "Packed file")->required()->type_name("FILE");
  app->add_option("-o,--out", flags->out, "ONNX or Paddle file")->required()->type_name("FILE");
  app->add_flag("--external", flags->external, "Weights in a data file beside it");
  add_common_flags(*app, flags->common, Work::Reads);
  return {app, [flags] { return run_unpack(*flags); }};
}

}  // namespace quench::cli
