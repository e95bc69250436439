// SPDX-License-Identifier: Apache-2.0
// PaddleSlim's one call, with its parameter names.
#include "example.h"
#include "quench/paddleslim.h"

namespace {

void run(const example::Arguments& given) {
  quench::QuantPostStaticOptions options;
  options.model_dir = given.model;
  options.quantize_model_path = given.out;
  options.data_loader = example::samples(given.data, 0);
  options.batch_size = 10;
  options.batch_nums = 10;
  options.algo = "hist";
  options.hist_percent = 0.9999;
  options.bias_correction = true;
  options.weight_quantize_type = "channel_wise_abs_max";

  const quench::QuantizeReport report = quench::quant_post_static(options);
  std::cout << report.integer_nodes << " nodes on integers, calibrated with "
            << report.calibration_samples << " samples\n";
  example::print_cosine(given);
}

}  // namespace

int main(int argc, char** argv) {
  return example::run_example(argc, argv, "quant_post_static", run);
}
