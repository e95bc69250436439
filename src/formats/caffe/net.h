// SPDX-License-Identifier: Apache-2.0
// A Caffe network in plain form: the layers of its text that run in use, and their weights.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "formats/caffe/caffe.pb.h"
#include "quench/model.h"

namespace quench::caffe {

struct NetInput {
  std::string name;
  Shape shape;
};

struct Net {
  std::string name;
  std::vector<NetInput> inputs;        ///< of the head; layers of type Input are others
  std::vector<LayerParameter> layers;  ///< those of the phase TEST
};

/// The weights of layers, by their names, in Caffe's order.
using LayerBlobs = std::map<std::string, std::vector<Tensor>>;

/// Reads the text of a network. Throws Error(BadModel) with line and column, and names what is not
/// known of a layer's parameters.
Net read_net(std::span<const std::byte> text);
LayerBlobs read_weights(std::span<const std::byte> file);

/// Every layer that has no row is named in one Error(Unsupported), before anything else is done.
Model translate(const Net& net, const LayerBlobs& weights);

/// Whether the bytes look like either file. Cheap; never throw.
bool is_prototxt(std::span<const std::byte> file) noexcept;
bool is_caffemodel(std::span<const std::byte> file) noexcept;

}  // namespace quench::caffe
