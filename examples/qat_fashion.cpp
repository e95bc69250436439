// SPDX-License-Identifier: Apache-2.0
// Trains the demo's network with weights of 3 bits and activations of 4, in a loop of its own with
// an optimiser of libtorch: qat_fashion MODEL IMAGES OUT. The float network is the teacher.
#include <torch/torch.h>

#include <cstdio>

#include "quench/data.h"
#include "quench/qat.h"

namespace {

constexpr std::int64_t kImages = 1000;
constexpr std::int64_t kBatch = 50;
constexpr int kEpochs = 8;

/// All images as one tensor.
at::Tensor read_images(const char* path, const quench::Model& model) {
  quench::DataOptions options{.path = path, .limit = kImages};
  options.image.mean = {72.9};
  options.image.std = {90};
  const auto source = quench::open_data(options, {model.graph[model.graph.inputs[0]]});
  std::vector<at::Tensor> images;
  for (std::int64_t i = 0; i < source->size(); ++i) {
    const quench::Tensor image = source->read(i).inputs.begin()->second;
    images.push_back(at::tensor(at::ArrayRef<float>(image.data<float>().data(), 28 * 28)));
  }
  return at::stack(images).reshape({-1, 1, 28, 28});
}

double agreement(quench::TrainableModel& student, const at::Tensor& images,
                 const at::Tensor& wanted) {
  const at::NoGradGuard no_gradients;
  student.eval();
  const at::Tensor got = student.forward(images).argmax(1);
  student.train();
  return 100.0 * (got == wanted.argmax(1)).to(at::kFloat).mean().item<double>();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: qat_fashion MODEL IMAGES OUT\n");
    return 2;
  }
  try {
    torch::manual_seed(1);  // the same order of images each time
    const quench::Model model = quench::load(argv[1]);
    const at::Tensor images = read_images(argv[2], model);
    quench::QatConfig config;
    config.weight_bits = 3;
    config.activation_bits = 4;
    config.weight_quantize_type = "channel_wise_lsq_weight";
    config.activation_quantize_type = "lsq_act";
    const quench::QAT qat(config);
    quench::TrainableModel student = qat.quantize(model);

    // The float outputs are the targets: no label is needed.
    student.quantize(false);
    const at::Tensor wanted = student.forward(images).detach();
    student.quantize(true);
    (void)student.forward(images.narrow(0, 0, kBatch));  // the first scales
    std::printf("agreement with float before training: %.1f %%\n",
                agreement(student, images, wanted));

    torch::optim::Adam optimizer(student.parameters(), torch::optim::AdamOptions(1e-3));
    for (int epoch = 0; epoch < kEpochs; ++epoch) {
      const at::Tensor order = at::randperm(images.size(0));
      double sum = 0;
      for (std::int64_t at = 0; at + kBatch <= images.size(0); at += kBatch) {
        const at::Tensor which = order.narrow(0, at, kBatch);
        optimizer.zero_grad();
        const at::Tensor loss = at::mse_loss(student.forward(images.index_select(0, which)),
                                             wanted.index_select(0, which));
        loss.backward();
        optimizer.step();
        sum += loss.item<double>();
      }
      std::printf("epoch %d: loss %.4f\n", epoch + 1,
                  sum / static_cast<double>(images.size(0) / kBatch));
    }
    std::printf("agreement with float: %.1f %%\n", agreement(student, images, wanted));
    qat.save_quantized_model(student, argv[3]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "qat_fashion: %s\n", error.what());
    return 1;
  }
}
