// SPDX-License-Identifier: Apache-2.0
// PaddleSlim's one call, with its parameter names. Arguments: the folder of the data, OUT.onnx
#include "fashion_samples.h"
#include "quench/paddleslim.h"

namespace {

void run(const std::string& folder, const std::string& out) {
  quench::QuantPostStaticOptions options;
  options.model_dir = folder;
  options.model_filename = "fashion.onnx";
  options.save_model_path = out;
  options.data_loader = fashion::samples(folder, 0);
  options.batch_size = 10;
  options.batch_nums = 10;
  options.algo = "hist";
  options.hist_percent = 0.9999;
  options.bias_correction = true;
  options.weight_quantize_type = "channel_wise_abs_max";

  const quench::QuantizeReport report = quench::quant_post_static(options);
  std::cout << report.integer_nodes << " nodes on integers, calibrated with "
            << report.calibration_samples << " samples\n";
  fashion::print_cosine(out, folder);
}

}  // namespace

int main(int argc, char** argv) {
  return fashion::run_example(argc, argv, "quant_post_static DATA_FOLDER OUT.onnx", run);
}
