// SPDX-License-Identifier: Apache-2.0
// quench inspect: what is in a model file.
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/common.h"
#include "cli/errors.h"
#include "cli/json.h"
#include "cli/table.h"
#include "quench/formats.h"

namespace quench::cli {
namespace {

struct InspectOptions {
  std::string model;
  bool dump = false;
  CommonFlags common;
};

std::string domain_name(const std::string& domain) { return domain.empty() ? "ai.onnx" : domain; }

Json summary_json(const ModelSummary& summary) {
  Json json = {{"model", summary.path},
               {"bytes_on_disk", summary.bytes_on_disk},
               {"ir_version", summary.ir_version},
               {"opsets", Json::object()},
               {"producer", summary.producer},
               {"inputs", Json::array()},
               {"outputs", Json::array()},
               {"nodes", summary.num_nodes},
               {"operators", summary.op_counts},
               {"parameters", summary.num_parameters},
               {"weights", Json::object()},
               {"unsupported", Json::array()},
               {"scales", Json::array()}};
  for (const auto& [domain, version] : summary.opsets)
    json["opsets"][domain_name(domain)] = version;
  for (const Value& value : summary.inputs) json["inputs"].push_back(to_json(value));
  for (const Value& value : summary.outputs) json["outputs"].push_back(to_json(value));
  for (const auto& [type, row] : summary.weights_by_type) {
    json["weights"][type] = {
        {"tensors", row.tensors}, {"elements", row.elements}, {"bytes", row.bytes}};
  }
  for (const UnsupportedNode& node : summary.unsupported) {
    json["unsupported"].push_back(
        {{"node", node.node}, {"op_type", node.op_type}, {"reason", node.reason}});
  }
  for (const ModelSummary::TensorScales& row : summary.scales) {
    json["scales"].push_back({{"tensor", row.tensor}, {"type", row.type}, {"scales", row.scales}});
  }
  return json;
}

void print_facts(const ModelSummary& summary) {
  std::string opsets;
  for (const auto& [domain, version] : summary.opsets) {
    opsets += (opsets.empty() ? "" : ", ") + domain_name(domain) + " " + std::to_string(version);
  }
  Table facts;
  facts.column("model").column(summary.path);
  facts.row({"size", human_bytes(summary.bytes_on_disk)});
  facts.row({"IR version", std::to_string(summary.ir_version)});
  facts.row({"opset", opsets});
  if (!summary.producer.empty()) facts.row({"producer", summary.producer});
  facts.row({"nodes", grouped(summary.num_nodes)});
  facts.row({"parameters", grouped(summary.num_parameters)});
  print(facts.text());
}

void print_tables(const ModelSummary& summary) {
  Table ports;
  ports.column("port").column("name").column("type");
  for (const Value& value : summary.inputs) {
    ports.row({"input", value.name, to_string(value.type)});
  }
  for (const Value& value : summary.outputs) {
    ports.row({"output", value.name, to_string(value.type)});
  }
  Table operators;
  operators.column("operator").column("count", Align::Right);
  for (const auto& [name, count] : summary.op_counts) operators.row({name, grouped(count)});
  Table weights;
  weights.column("weights").column("tensors", Align::Right);
  weights.column("elements", Align::Right).column("size", Align::Right);
  for (const auto& [type, row] : summary.weights_by_type) {
    weights.row({type, grouped(row.tensors), grouped(row.elements), human_bytes(row.bytes)});
  }
  Table missing;
  missing.column("unsupported node").column("operator").column("reason");
  for (const UnsupportedNode& node : summary.unsupported) {
    missing.row({node.node, node.op_type, node.reason});
  }
  Table scales;
  scales.column("quantised tensor").column("type").column("scales");
  for (const ModelSummary::TensorScales& row : summary.scales) {
    scales.row({row.tensor, row.type, row.scales});
  }
  for (const Table* table : {&ports, &operators, &weights, &scales, &missing}) {
    if (!table->empty()) print("\n" + table->text());
  }
}

int run(const InspectOptions& options) {
  if (options.dump) {
    const std::string text = dump(load_to_show(options.model));
    if (options.common.json) {
      print_json({{"model", options.model}, {"dump", text}});
    } else {
      print(text);
    }
    return kOk;
  }
  const ModelSummary summary = inspect(options.model);
  if (options.common.json) {
    print_json(summary_json(summary));
    return kOk;
  }
  print_facts(summary);
  print_tables(summary);
  return kOk;
}

}  // namespace

Command setup_inspect(CLI::App& root) {
  CLI::App* app =
      add_verb(root, "inspect", "Show what is in a model file", "quench inspect model.onnx");
  auto options = std::make_shared<InspectOptions>();
  add_model(*app, options->model);
  app->add_flag("--dump", options->dump, "Print every value and node as text");
  add_common_flags(*app, options->common, Work::Reads);
  return {app, [options] { return run(*options); }};
}

}  // namespace quench::cli
