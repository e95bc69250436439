// SPDX-License-Identifier: Apache-2.0
// quench_samples MODEL OUT.npy --data PATH ...: the samples that `quench` feeds to a model,
// prepared by its own reader, as one array. Scripts that measure other runtimes then feed the same
// numbers.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <iostream>

#include "cli/option_flags.h"
#include "quench/error.h"
#include "quench/model.h"

namespace {

using namespace quench;

std::vector<Value> model_inputs(const Graph& graph) {
  std::vector<Value> inputs;
  for (const ValueId id : graph.inputs) {
    if (!graph[id].constant) inputs.push_back(graph[id]);
  }
  return inputs;
}

void write_samples(const std::string& model_path, const std::string& out_path,
                   const DataOptions& options) {
  const std::vector<Value> inputs = model_inputs(load(model_path).graph);
  const auto source = open_data(options, inputs);
  Tensor whole;
  for (std::int64_t i = 0; i < source->size(); ++i) {
    const Tensor one = source->read(i).inputs.at(inputs.at(0).name);
    if (i == 0) {
      Shape shape = one.shape();
      shape.at(0) = source->size();
      whole = Tensor::zeros(one.dtype(), shape);
    }
    const auto bytes = one.bytes();
    if (bytes.size() * static_cast<std::size_t>(source->size()) != whole.bytes().size()) {
      throw Error(ErrorKind::BadData, "the samples differ in size: give --resize");
    }
    std::ranges::copy(bytes,
                      whole.mutable_bytes().begin() +
                          static_cast<std::ptrdiff_t>(static_cast<std::size_t>(i) * bytes.size()));
  }
  write_npy(whole, out_path);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Writes the samples that a model is fed with as one .npy file");
  std::string model;
  std::string out;
  cli::DataFlags flags;
  app.add_option("model", model, "Model file")->required();
  app.add_option("out", out, "The .npy file to write")->required();
  cli::add_data_flags(app, flags);
  try {
    app.parse(argc, argv);
    write_samples(model, out, cli::data_options(flags));
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
