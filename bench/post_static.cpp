// SPDX-License-Identifier: Apache-2.0
// Our quant_post_static with PaddleSlim's defaults, as a process beside theirs.
#include <cstdlib>
#include <exception>
#include <iostream>

#include "quench/paddleslim.h"

int main(int argc, char** argv) try {
  if (argc != 5) {
    std::cerr << "usage: quench_post_static MODEL SAMPLES ALGO OUT_FOLDER\n";
    return 2;
  }
  (void)::setenv("GOMP_SPINCOUNT", "1000", 0);  // as the program does
  quench::QuantPostStaticOptions options;
  options.model_dir = argv[1];
  options.data_loader.path = argv[2];
  options.algo = argv[3];
  options.quantize_model_path = argv[4];
  (void)quench::quant_post_static(options);
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
