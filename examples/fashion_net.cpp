// SPDX-License-Identifier: Apache-2.0
// The example network in libtorch.
#include "fashion_net.h"

#include "fashion_data.h"

namespace fashion {

// What quantisation meets in real networks, in small: plain and depthwise convolutions, batch
// normalisation that must be folded, both activations, and a residual addition.
const std::vector<Unit>& units() {
  static const std::vector<Unit> table = {
      {.channels = 16,
       .kernel = 3,
       .stride = 1,
       .depthwise = false,
       .activation = Activation::Relu},
      {.channels = 32,
       .kernel = 3,
       .stride = 2,
       .depthwise = false,
       .activation = Activation::Relu},
      {.channels = 32,
       .kernel = 3,
       .stride = 1,
       .depthwise = true,
       .activation = Activation::Relu6},
      {.channels = 64,
       .kernel = 1,
       .stride = 1,
       .depthwise = false,
       .activation = Activation::Relu6},
      {.channels = 64,
       .kernel = 3,
       .stride = 1,
       .depthwise = true,
       .activation = Activation::Relu6},
      {.channels = 64,
       .kernel = 1,
       .stride = 1,
       .depthwise = false,
       .activation = Activation::Relu,
       .skip = 3},
      {.channels = 64,
       .kernel = 3,
       .stride = 2,
       .depthwise = true,
       .activation = Activation::Relu6},
      {.channels = 128,
       .kernel = 1,
       .stride = 1,
       .depthwise = false,
       .activation = Activation::Relu6},
      {.channels = 128,
       .kernel = 3,
       .stride = 1,
       .depthwise = true,
       .activation = Activation::Relu6},
      {.channels = 128,
       .kernel = 1,
       .stride = 1,
       .depthwise = false,
       .activation = Activation::Relu6},
  };
  return table;
}

NetImpl::NetImpl() {
  std::int64_t channels = 1;
  for (const Unit& unit : units()) {
    const std::string number = std::to_string(convs.size());
    auto options = torch::nn::Conv2dOptions(channels, unit.channels, unit.kernel)
                       .stride(unit.stride)
                       .padding(unit.kernel / 2)
                       .groups(unit.depthwise ? channels : 1)
                       .bias(false);
    convs.push_back(register_module("conv" + number, torch::nn::Conv2d(options)));
    norms.push_back(register_module("norm" + number, torch::nn::BatchNorm2d(unit.channels)));
    torch::nn::init::kaiming_normal_(convs.back()->weight, 0, torch::kFanOut, torch::kReLU);
    const torch::Tensor weight = convs.back()->weight;
    weight.set_data(weight.contiguous(torch::MemoryFormat::ChannelsLast));
    channels = unit.channels;
  }
  last = register_module("last", torch::nn::Linear(channels, kClasses));
}

torch::Tensor NetImpl::forward(const torch::Tensor& images) {
  std::vector<torch::Tensor> outputs;
  // NHWC is a third faster than NCHW on the CPU.
  torch::Tensor value = images.contiguous(torch::MemoryFormat::ChannelsLast);
  for (std::size_t index = 0; index < units().size(); ++index) {
    const Unit& unit = units()[index];
    value = norms[index]->forward(convs[index]->forward(value));
    if (unit.skip >= 0) value = value + outputs[static_cast<std::size_t>(unit.skip)];
    value = unit.activation == Activation::Relu ? torch::relu(value) : torch::relu6(value);
    outputs.push_back(value);
  }
  return last->forward(value.mean({2, 3}));
}

}  // namespace fashion
