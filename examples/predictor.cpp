// SPDX-License-Identifier: Apache-2.0
// A check of the inference: a float and a quantised model through the predictor that users of
// Paddle Inference know. OUT is the quantised model.
#include "quench/predictor.h"

#include "example.h"

namespace {

std::size_t answer(quench::Predictor& predictor, const quench::Tensor& image) {
  const auto input = predictor.get_input_handle(predictor.get_input_names().front());
  input->reshape(image.shape());
  const auto pixels = image.data<float>();
  input->copy_from_cpu(pixels);
  predictor.run();
  const auto output = predictor.get_output_handle(predictor.get_output_names().front());
  const std::vector<float> scores = output->copy_to_cpu<float>();
  return static_cast<std::size_t>(std::ranges::max_element(scores) - scores.begin());
}

void run(const example::Arguments& given) {
  quench::Config in_float(given.model);
  quench::Config quantised(given.out);
  for (quench::Config* config : {&in_float, &quantised}) {
    config->set_cpu_math_library_num_threads(2);
  }
  const auto first = quench::create_predictor(in_float);
  const auto second = quench::create_predictor(quantised);

  const std::vector<quench::Value> inputs = quench::Session(quench::load(given.model)).inputs();
  const auto source = quench::open_data(example::samples(given.data, 100), inputs);
  std::int64_t same = 0;
  for (std::int64_t i = 0; i < source->size(); ++i) {
    const quench::Sample sample = source->read(i);
    const quench::Tensor& image = sample.inputs.begin()->second;
    same += answer(*first, image) == answer(*second, image) ? 1 : 0;
  }
  std::cout << "the same answer for " << same << " of " << source->size() << " samples\n";
}

}  // namespace

int main(int argc, char** argv) { return example::run_example(argc, argv, "predictor", run); }
