// SPDX-License-Identifier: Apache-2.0
// The example network: described once as a table, built from it in libtorch and in Quench.
#pragma once

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <torch/torch.h>
#pragma GCC diagnostic pop

#include <cstdint>
#include <vector>

#include "quench/model.h"

namespace fashion {

enum class Activation { Relu, Relu6 };

/// A convolution with its batch normalisation, an optional addition, and an activation.
struct Unit {
  std::int64_t channels;
  std::int64_t kernel;
  std::int64_t stride;
  bool depthwise;
  Activation activation;
  int skip = -1;  ///< the unit whose output is added before the activation; -1: none
};

/// The network: these units, the mean over the plane, and one fully connected layer.
const std::vector<Unit>& units();

/// The network in libtorch.
class NetImpl : public torch::nn::Module {
 public:
  NetImpl();
  torch::Tensor forward(const torch::Tensor& images);

  std::vector<torch::nn::Conv2d> convs;
  std::vector<torch::nn::BatchNorm2d> norms;
  torch::nn::Linear last = nullptr;
};
TORCH_MODULE(Net);

/// The network with its weights as a model: `image` [N,1,28,28] to `scores` [N,10].
quench::Model to_model(const Net& net);

}  // namespace fashion
