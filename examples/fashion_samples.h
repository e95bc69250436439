// SPDX-License-Identifier: Apache-2.0
// The images that lie beside the demo's network, and a look at what quantising cost.
#pragma once

#include <iostream>
#include <string>

#include "quench/error.h"
#include "quench/evaluate.h"

namespace fashion {

/// The first `limit` test images as the network wants them.
inline quench::DataOptions samples(const std::string& folder, std::int64_t limit) {
  quench::DataOptions data;
  data.path = folder + "/fashion-test-images-idx3-ubyte.gz";
  data.limit = limit;
  data.image.mean = {72.9};
  data.image.std = {90};
  return data;
}

/// Prints the cosine of a quantised model's outputs and the float model's.
inline void print_cosine(const std::string& quantised, const std::string& folder) {
  quench::EvaluateOptions options;
  options.data = samples(folder, 1000);
  options.metrics = {"cosine"};
  options.reference = folder + "/fashion.onnx";
  for (const auto& output : quench::evaluate(quantised, options).outputs) {
    std::cout << "cosine of " << output.output << ": " << output.scores.at("cosine") << "\n";
  }
}

/// The main function of an example: `run` gets the folder of the images and where results go.
inline int run_example(int argc, char** argv, const char* usage,
                       void (*run)(const std::string&, const std::string&)) {
  if (argc != 3) {
    std::cerr << "usage: " << usage << "\n";
    return 2;
  }
  try {
    run(argv[1], argv[2]);
  } catch (const quench::Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}

}  // namespace fashion
