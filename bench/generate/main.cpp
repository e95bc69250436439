// SPDX-License-Identifier: Apache-2.0
// quench_generate: writes models of known architectures with random weights, to be timed.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>
#include <cstdio>
#include <map>

#include "generate/builder.h"

namespace {

using quench::generate::Options;

const std::map<std::string, quench::Model (*)(const Options&)>& kinds() {
  static const std::map<std::string, quench::Model (*)(const Options&)> table = {
      {"resnet50", quench::generate::resnet50},
      {"bert-base", quench::generate::bert_base},
      {"transformer", quench::generate::transformer},
      {"big", quench::generate::big}};
  return table;
}

void generate(const std::string& kind, const std::string& path, const Options& options,
              bool external) {
  const quench::Model model = kinds().at(kind)(options);
  using Data = quench::SaveOptions::Data;
  quench::save(model, path, {.data = external ? Data::External : Data::Inside});
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Writes a model with random weights, the same for the same options.");
  std::string kind;
  std::string path;
  Options options;
  bool external = false;
  app.add_option("kind", kind, "resnet50, bert-base, transformer or big")
      ->required()
      ->check(CLI::IsMember(kinds()));
  app.add_option("out", path, "The model file to write")->required();
  app.add_option("--seed", options.seed, "Seed of the weights");
  app.add_option("--opset", options.opset, "Operator set; bert-base below 17 writes out its norms")
      ->check(CLI::Range(13, 17));
  app.add_flag("--bn", options.keep_norm, "resnet50: keep batch normalisation as nodes");
  app.add_option("--layers", options.layers, "bert-base: number of layers")
      ->check(CLI::Range(1, 1000));
  app.add_option("--size-mb", options.size_mb, "big, transformer: millions of bytes")
      ->check(CLI::Range(1, 100000));
  app.add_option("--hidden", options.hidden, "transformer: width, a multiple of 64")
      ->check(CLI::Range(64, 65536));
  app.add_flag("--external", external, "Weights in a file of their own");
  CLI11_PARSE(app, argc, argv);
  try {
    generate(kind, path, options, external);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "quench_generate: %s\n", error.what());
    return 5;
  }
  return 0;
}
