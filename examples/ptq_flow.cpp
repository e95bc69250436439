// SPDX-License-Identifier: Apache-2.0
// PaddleSlim's flow: observe, run batches, convert, save. Arguments: the folder of the data,
// OUT.onnx
#include "fashion_samples.h"
#include "quench/ptq.h"

namespace {

void run(const std::string& folder, const std::string& out) {
  quench::QuantConfig config;
  config.global.activation_observer = "KL";
  config.by_type["Gemm"].activation_observer = "min_max";  // the classifier wants its extremes

  const quench::PTQ ptq(config);
  quench::ObservedModel observed = ptq.quantize(quench::load(folder + "/fashion.onnx"));

  const auto source = quench::open_data(fashion::samples(folder, 100), observed.inputs());
  quench::BatchReader reader(*source, 10);
  while (const auto batch = reader.next()) observed.run(batch->inputs);

  const quench::Model quantised = ptq.convert(observed);
  quench::save(quantised, out);
  fashion::print_cosine(out, folder);
}

}  // namespace

int main(int argc, char** argv) {
  return fashion::run_example(argc, argv, "ptq_flow DATA_FOLDER OUT.onnx", run);
}
