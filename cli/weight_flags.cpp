// SPDX-License-Identifier: Apache-2.0
// quench quantize --type weight and --type dynamic.
#include "cli/weight_flags.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <algorithm>

#include "cli/common.h"
#include "cli/table.h"

namespace quench::cli {

void add_weight_flags(CLI::App& app, WeightFlags& flags) {
  const WeightQuantOptions defaults;
  with_default(app.add_option("--type", flags.type, "full, weight or dynamic"), "full")
      ->check(CLI::IsMember({"full", "weight", "dynamic"}))
      ->type_name("NAME");
  with_default(
      app.add_option("--bits", flags.bits, "Bits of a weight, 1 to 16; 0: mixed, chosen by layer"),
      defaults.bits)
      ->check(CLI::Range(0, 16))
      ->type_name("N");
  app.add_option("--group-size", flags.group_size,
                 "Weights of a matrix product that share a grid: 16, 32, 64 or 128")
      ->type_name("N");
  app.add_flag("--symmetric", flags.symmetric, "Grids of weights without a zero point");
  app.add_flag("--gptq", flags.gptq, "Round weights by what the layers' inputs look like: --data");
  with_default(
      app.add_option("--init-scale", flags.init_scale,
                     "Mixed bits: the size, as the relative error of fixed bits that take as much"),
      defaults.init_scale)
      ->type_name("X");
  app.add_flag("--auto-tune", flags.auto_tune,
               "Mixed bits: the smallest model that keeps --target-cosine");
  with_default(
      app.add_option("--target-cosine", flags.target_cosine, "Of the outputs, for --auto-tune"),
      defaults.cosine_target)
      ->type_name("X");
  app.add_option("--target-size", flags.target_size,
                 "Mixed bits: the share of the float weights to fit in, as 0.15")
      ->type_name("X");
  with_default(app.add_option("--strategy", flags.strategy,
                              "Dynamic: ALWC (weights by channel) or ACWL (activations by row)"),
               "ALWC")
      ->check(CLI::IsMember({"ALWC", "ACWL"}))
      ->type_name("NAME");
}

void apply(const WeightFlags& flags, QuantizeOptions& options) {
  if (flags.type == "full") options.type = QuantType::Full;
  if (flags.type == "weight") options.type = QuantType::Weight;
  if (flags.type == "dynamic") options.type = QuantType::Dynamic;
  WeightQuantOptions& weight = options.weight;
  if (flags.bits) weight.bits = *flags.bits;
  if (flags.group_size) weight.group_size = *flags.group_size;
  if (flags.symmetric) weight.symmetric = true;
  if (flags.gptq) weight.gptq = true;
  if (flags.init_scale) weight.init_scale = *flags.init_scale;
  if (flags.auto_tune) weight.auto_tune = true;
  if (flags.target_cosine) weight.cosine_target = *flags.target_cosine;
  if (flags.target_size) weight.size_target = *flags.target_size;
  if (flags.strategy == "ALWC") {
    options.dynamic.quant_strategy = DynamicQuantOptions::Strategy::ALWC;
  }
  if (flags.strategy == "ACWL") {
    options.dynamic.quant_strategy = DynamicQuantOptions::Strategy::ACWL;
  }
}

Json weights_json(const QuantizeReport& report) {
  Json list = Json::array();
  for (const WeightChoice& choice : report.weights) {
    list.push_back({{"node", choice.node},
                    {"op_type", choice.op_type},
                    {"weight", choice.weight},
                    {"bits", choice.bits},
                    {"elements", choice.elements},
                    {"bytes", choice.bytes},
                    {"error", number(choice.error)},
                    {"method", choice.method}});
  }
  return list;
}

void print_weights(const QuantizeReport& report) {
  constexpr std::size_t kMaxRows = 60;
  Table table;
  table.column("weight").column("read by").column("elements", Align::Right);
  table.column("bits", Align::Right).column("error", Align::Right).column("rounded by");
  for (std::size_t i = 0; i < std::min(kMaxRows, report.weights.size()); ++i) {
    const WeightChoice& choice = report.weights[i];
    table.row({choice.weight, choice.op_type, grouped(choice.elements), grouped(choice.bits),
               fixed(choice.error, 4), choice.method});
  }
  print(table.text());
  std::int64_t bytes = 0;
  std::int64_t elements = 0;
  for (const WeightChoice& choice : report.weights) {
    bytes += choice.bytes;
    elements += choice.elements;
  }
  if (report.weights.size() > kMaxRows) {
    print("and " + grouped(static_cast<std::int64_t>(report.weights.size() - kMaxRows)) +
          " more (--json lists them all)\n");
  }
  if (elements > 0) {
    const double share = 25.0 * static_cast<double>(bytes) / static_cast<double>(elements);
    print("as ONNX stores them, these weights take " + fixed(share, 2) +
          " % of their float32 size\n");
  }
  print("\n");
}

}  // namespace quench::cli
