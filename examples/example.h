// SPDX-License-Identifier: Apache-2.0
// What the programs share: samples for two networks, and a look at what quantising cost.
#pragma once

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <string>

#include "quench/error.h"
#include "quench/evaluate.h"

namespace example {

/// What a program was called with.
struct Arguments {
  std::string model;  ///< a file or a folder
  std::string data;
  std::string out;
};

/// Samples as a network wants them: text lines for PP-OCR's direction classifier, or the images
/// beside the demo's network.
inline quench::DataOptions samples(const std::string& path, std::int64_t limit) {
  quench::DataOptions data;
  data.path = path;
  data.limit = limit;
  if (std::filesystem::is_directory(path)) {
    data.image.color = quench::ColorOrder::Bgr;
    data.image.resize_fit = quench::ImageSize{.width = 192, .height = 48};
    data.image.mean = {127.5};
    data.image.std = {127.5};
  } else {
    data.image.mean = {72.9};
    data.image.std = {90};
  }
  return data;
}

/// Whether a path is that of a Paddle program.
inline bool is_paddle(const std::string& path) { return path.ends_with(".pdmodel"); }

/// Prints the least cosine of a quantised model's outputs and the float model's.
inline void print_cosine(const Arguments& given) {
  quench::EvaluateOptions options;
  options.data = samples(given.data, 100);
  options.metrics = {"cosine"};
  options.reference = given.model;
  double least = 1;
  for (const auto& output : quench::evaluate(given.out, options).outputs) {
    least = std::min(least, output.scores.at("cosine"));
  }
  std::cout << "cosine of the outputs: " << least << "\n";
}

/// The main function of an example. Without the model there is nothing to show: 77 tells so.
inline int run_example(int argc, char** argv, const char* name, void (*run)(const Arguments&)) {
  if (argc != 4) {
    std::cerr << "usage: " << name << " MODEL DATA OUT\n";
    return 2;
  }
  const Arguments given{argv[1], argv[2], argv[3]};
  if (!std::filesystem::exists(given.model)) {
    std::cerr << "skipped: there is no " << given.model << "\n";
    return 77;
  }
  try {
    run(given);
  } catch (const quench::Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}

}  // namespace example
