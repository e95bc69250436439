// SPDX-License-Identifier: Apache-2.0
// Builds small TensorFlow graphs for tests.
#pragma once

#include <string>
#include <vector>

#include "formats/tensorflow/file.h"
#include "formats/tensorflow/graph.pb.h"
#include "quench/error.h"
#include "quench/tensor.h"

namespace quench::testing {

/// A graph that grows by one node a call.
class TfBuilder {
 public:
  void node(const std::string& name, const std::string& op,
            const std::vector<std::string>& inputs) {
    auto* made = graph.add_node();
    made->set_name(name);
    made->set_op(op);
    for (const std::string& each : inputs) made->add_input(each);
  }
  void input(const std::string& name, const Shape& shape) {
    node(name, "Placeholder", {});
    attribute(name, "dtype").set_type(1);
    for (const std::int64_t size : shape) {
      attribute(name, "shape").mutable_shape()->add_dim()->set_size(size);
    }
  }
  void constant(const std::string& name, const Tensor& data) {
    node(name, "Const", {});
    auto* to = attribute(name, "value").mutable_tensor();
    to->set_dtype(data.dtype() == DType::Int32 ? 3 : 1);
    for (const std::int64_t size : data.shape())
      to->mutable_tensor_shape()->add_dim()->set_size(size);
    to->set_tensor_content(data.bytes().data(), data.bytes().size());
  }
  void ints(const std::string& of, const std::string& name, const std::vector<std::int64_t>& all) {
    for (const std::int64_t each : all) attribute(of, name).mutable_list()->add_i(each);
  }
  void text(const std::string& of, const std::string& name, const std::string& word) {
    attribute(of, name).set_s(word);
  }

  std::string bytes() const { return graph.SerializeAsString(); }
  Model read() const {
    const std::string file = bytes();
    return tensorflow::read_bytes(std::as_bytes(std::span(file)));
  }

  tensorflow::wire::GraphDef graph;

 private:
  tensorflow::wire::AttrValue& attribute(const std::string& of, const std::string& name) {
    for (auto& each : *graph.mutable_node()) {
      if (each.name() == of) return (*each.mutable_attr())[name];
    }
    fail_to_find(of);
  }
  [[noreturn]] static void fail_to_find(const std::string& of) {
    throw Error(ErrorKind::Internal, "no node " + of);
  }
};

/// x [1,5,5,2] through a convolution, a bias and a Relu to y [1,3,3,4].
inline TfBuilder tf_conv(const Tensor& weight = Tensor::zeros(DType::Float32, {3, 3, 2, 4}),
                         const Tensor& bias = Tensor::zeros(DType::Float32, {4})) {
  TfBuilder builder;
  builder.input("x", {1, 5, 5, 2});
  builder.constant("w", weight);
  builder.constant("b", bias);
  builder.node("conv", "Conv2D", {"x", "w"});
  builder.ints("conv", "strides", {1, 2, 2, 1});
  builder.text("conv", "padding", "SAME");
  builder.node("sum", "BiasAdd", {"conv", "b"});
  builder.node("y", "Relu", {"sum"});
  return builder;
}

}  // namespace quench::testing
