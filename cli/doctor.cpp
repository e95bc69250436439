// SPDX-License-Identifier: Apache-2.0
// quench doctor: whether images are prepared as the model wants them.
#include "quench/doctor.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/common.h"
#include "cli/errors.h"
#include "cli/json.h"
#include "cli/option_flags.h"
#include "cli/table.h"

namespace quench::cli {
namespace {

struct DoctorFlags {
  std::string model;
  DataFlags data;
  CommonFlags common;
};

std::string numbers(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) text += fmt::format("{}{:g}", text.empty() ? "" : ",", value);
  return text.empty() ? "-" : text;
}

std::string color_of(const ImageOptions& image) {
  return image.color == ColorOrder::Rgb ? "RGB" : image.color == ColorOrder::Bgr ? "BGR" : "gray";
}

Json result_json(const DoctorResult& result) {
  Json json = {{"samples", result.samples}, {"output", result.output}, {"advice", result.advice}};
  json["trials"] = Json::array();
  for (const DoctorTrial& trial : result.trials) {
    Json row = {{"name", trial.name},
                {"color", color_of(trial.image)},
                {"mean", trial.image.mean},
                {"std", trial.image.std},
                {"sureness", number(trial.sureness)}};
    if (trial.top1) row["top1"] = *trial.top1;
    json["trials"].push_back(std::move(row));
  }
  return json;
}

void print_result(const DoctorResult& result) {
  Table table;
  table.column("prepared").column("colours").column("mean").column("std");
  table.column("sureness", Align::Right).column("top1", Align::Right);
  for (const DoctorTrial& trial : result.trials) {
    table.row({trial.name, color_of(trial.image), numbers(trial.image.mean),
               numbers(trial.image.std), fixed(trial.sureness, 3),
               trial.top1 ? fixed(*trial.top1, 1) : "-"});
  }
  print(table.text());
  print("\n" + grouped(result.samples) + " samples; sureness: the share of the best class of '" +
        result.output + "', with scores made equally large\n");
  for (const std::string& sentence : result.advice) print(sentence + "\n");
  if (result.advice.empty()) print("as given is as good as any of these\n");
}

int run(const DoctorFlags& flags) {
  ProgressBar bar;
  const Context context = make_context(flags.common, bar);
  const DoctorResult result = doctor(flags.model, data_options(flags.data), context);
  bar.clear();
  if (flags.common.json) {
    print_json(result_json(result));
  } else {
    print_result(result);
  }
  return kOk;
}

}  // namespace

Command setup_doctor(CLI::App& root) {
  CLI::App* app = add_verb(root, "doctor", "Try the usual ways to prepare images for a model",
                           "quench doctor model.onnx --data photos");
  auto flags = std::make_shared<DoctorFlags>();
  add_model(*app, flags->model);
  add_data_flags(*app, flags->data);
  add_common_flags(*app, flags->common, Work::Runs);
  return {app, [flags] { return run(*flags); }};
}

}  // namespace quench::cli
