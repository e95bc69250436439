// SPDX-License-Identifier: Apache-2.0
// Builds Caffe networks for tests.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "formats/caffe/caffe.pb.h"
#include "formats/caffe/net.h"
#include "quench/tensor.h"

namespace quench::testing {

/// Blobs by layer.
using CaffeBlobs = std::map<std::string, std::vector<Tensor>>;

inline std::string caffemodel(const CaffeBlobs& blobs) {
  caffe::Weights weights;
  weights.set_name("net");
  for (const auto& [name, tensors] : blobs) {
    auto& layer = *weights.add_layer();
    layer.set_name(name);
    for (const Tensor& tensor : tensors) {
      auto& blob = *layer.add_blobs();
      for (const std::int64_t dim : tensor.shape()) blob.mutable_shape()->add_dim(dim);
      for (const float each : tensor.data<float>()) blob.add_data(each);
    }
  }
  return weights.SerializeAsString();
}

inline std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

inline Model read_caffe(const std::string& text, const CaffeBlobs& blobs = {}) {
  return caffe::translate(caffe::read_net(bytes_of(text)),
                          caffe::read_weights(bytes_of(caffemodel(blobs))));
}

/// A network with one input of this shape in front of other layers.
inline std::string caffe_net(const std::string& dims, const std::string& layers) {
  return "name: \"net\"\nlayer { name: \"data\" type: \"Input\" top: \"data\" "
         "input_param { shape { " +
         dims + " } } }\n" + layers;
}

}  // namespace quench::testing
