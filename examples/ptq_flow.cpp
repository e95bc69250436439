// SPDX-License-Identifier: Apache-2.0
// PaddleSlim's flow: a config of observers, observe, run batches, convert and save.
#include "example.h"
#include "quench/observers.h"
#include "quench/ptq.h"

namespace {

void run(const example::Arguments& given) {
  quench::paddleslim::QuantConfig config(quench::KLObserver(8),
                                         quench::AbsMaxChannelWiseWeightObserver(8));
  // The classifier wants its extremes.
  config.add_type_config({"Linear"}, quench::AbsmaxObserver(8),
                         quench::MSEChannelWiseWeightObserver(8));
  if (example::is_paddle(given.out)) config.target = "paddle";

  const quench::PTQ ptq(config);
  quench::ObservedModel observed = ptq.quantize(quench::load(given.model));

  const auto source = quench::open_data(example::samples(given.data, 100), observed.inputs());
  quench::BatchReader reader(*source, 10);
  while (const auto batch = reader.next()) observed.run(batch->inputs);

  ptq.save_quantized_model(observed, given.out);
  example::print_cosine(given);
}

}  // namespace

int main(int argc, char** argv) { return example::run_example(argc, argv, "ptq_flow", run); }
