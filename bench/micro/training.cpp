// SPDX-License-Identifier: Apache-2.0
// quench_bench_training MODEL SHAPE CLASSES STEPS WEIGHT_QUANTER ACTIVATION_QUANTER
//   [DEVICE PRECISION]: milliseconds of a training step in float and with quantisation in the loop,
//   in turns, as JSON: of the clock,
// or with QUENCH_BENCH_CPU of the processor, which others that run do not lengthen. SHAPE is as in
// 32x3x32x32.
#include <torch/torch.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <sstream>

#include "quench/qat.h"

namespace {

constexpr int kWarm = 2;  ///< steps that are not timed
/// Likewise on a GPU, which is fast enough to wait until learned scales follow no range any more.
constexpr int kWarmOnGpu = 22;

quench::Shape parse_shape(const std::string& text) {
  quench::Shape shape;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, 'x');) shape.push_back(std::stoll(word));
  return shape;
}

/// Milliseconds since some moment.
double now() {
  static const bool cpu = std::getenv("QUENCH_BENCH_CPU") != nullptr;
  timespec time{};
  clock_gettime(cpu ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

struct Loop {
  quench::TrainableModel model;
  torch::optim::SGD optimizer;

  double step(const at::Tensor& x, const at::Tensor& labels) {
    const double begin = now();
    optimizer.zero_grad();
    at::cross_entropy_loss(model.forward(x).flatten(1), labels).backward();
    optimizer.step();
    // A GPU is done when a number is here.
    (void)optimizer.param_groups().back().params().back().flatten()[0].item<float>();
    return now() - begin;
  }
};

int run(int count, char** words) {
  const quench::Model model = quench::load(words[1]);
  const quench::Shape shape = parse_shape(words[2]);
  const int steps = std::stoi(words[4]);
  quench::QatConfig config;
  config.weight_quantize_type = words[5];
  config.activation_quantize_type = words[6];
  quench::Context context;
  if (count > 8) {
    context.device = words[7];
    context.precision = words[8];
  }
  const quench::QAT qat(config, {}, {}, {}, {}, context);
  const auto make = [&](bool quantizes) {
    quench::TrainableModel trained = qat.quantize(model);
    trained.quantize(quantizes);
    std::vector<at::Tensor> learned = trained.parameters();
    return Loop{std::move(trained),
                torch::optim::SGD(learned, torch::optim::SGDOptions(1e-6).momentum(0.9))};
  };
  Loop plain = make(false);
  Loop quantized = make(true);
  // Where the weights are: the engine has opened the GPU by now.
  const at::Device device = plain.model.parameters().front().device();
  const at::Tensor x = at::randn(shape).to(device).contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor labels = at::randint(std::stoll(words[3]), {shape[0]}, at::kLong).to(device);
  std::vector<double> in_float;
  std::vector<double> in_loop;
  const int warm = device.is_cpu() ? kWarm : kWarmOnGpu;
  for (int i = 0; i < steps + warm; ++i) {
    const double first = plain.step(x, labels);
    const double second = quantized.step(x, labels);
    if (i < warm) continue;
    in_float.push_back(first);
    in_loop.push_back(second);
  }
  std::printf("{\"float_ms\": %.3f, \"quantized_ms\": %.3f, \"images\": %lld}\n", median(in_float),
              median(in_loop), static_cast<long long>(shape[0]));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7 && argc != 9) {
    std::fprintf(stderr,
                 "usage: quench_bench_training MODEL SHAPE CLASSES STEPS WEIGHT_QUANTER "
                 "ACTIVATION_QUANTER\n");
    return 2;
  }
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "quench_bench_training: %s\n", error.what());
    return 1;
  }
}
