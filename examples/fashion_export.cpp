// SPDX-License-Identifier: Apache-2.0
// Writes the trained network with the graph API of Quench, node by node.
#include "fashion_data.h"
#include "fashion_net.h"

namespace fashion {
namespace {

quench::Tensor to_tensor(const torch::Tensor& source) {
  const torch::Tensor plain = source.detach().to(torch::kFloat32).contiguous();
  return quench::Tensor::of<float>(
      plain.sizes().vec(),
      std::span<const float>(plain.data_ptr<float>(), static_cast<std::size_t>(plain.numel())));
}

/// Adds nodes to a graph, each with one output.
class Writer {
 public:
  explicit Writer(quench::Graph& graph) : graph_(graph) {}

  quench::ValueId constant(const std::string& name, const torch::Tensor& source) {
    return graph_.add_constant(name, to_tensor(source));
  }
  quench::ValueId constant(const std::string& name, float value) {
    return graph_.add_constant(name, quench::Tensor::scalar<float>(value));
  }
  quench::Node& node(const std::string& op_type, std::vector<quench::ValueId> inputs,
                     const std::string& output) {
    quench::Node& added = graph_.add_node(op_type, std::move(inputs), {output});
    added.name = output;
    return added;
  }

  quench::ValueId conv(quench::ValueId input, const Unit& unit, const torch::Tensor& weight,
                       const std::string& name) {
    quench::Node& added = node("Conv", {input, constant(name + "_weight", weight)}, name);
    const std::int64_t pad = unit.kernel / 2;
    using Ints = std::vector<std::int64_t>;
    added.set("kernel_shape", Ints{unit.kernel, unit.kernel});
    added.set("strides", Ints{unit.stride, unit.stride});
    added.set("pads", Ints{pad, pad, pad, pad});
    if (unit.depthwise) added.set("group", unit.channels);
    return added.outputs.front();
  }
  quench::ValueId norm(quench::ValueId input, const torch::nn::BatchNorm2d& source,
                       const std::string& name) {
    quench::Node& added = node(
        "BatchNormalization",
        {input, constant(name + "_scale", source->weight), constant(name + "_bias", source->bias),
         constant(name + "_mean", source->running_mean),
         constant(name + "_var", source->running_var)},
        name);
    added.set("epsilon", static_cast<float>(source->options.eps()));
    return added.outputs.front();
  }
  quench::ValueId activation(quench::ValueId input, Activation kind, const std::string& name) {
    if (kind == Activation::Relu) return node("Relu", {input}, name).outputs.front();
    const quench::ValueId low = constant(name + "_low", 0.0F);
    const quench::ValueId high = constant(name + "_high", 6.0F);
    return node("Clip", {input, low, high}, name).outputs.front();
  }

 private:
  quench::Graph& graph_;
};

quench::ValueId add_units(Writer& write, quench::ValueId value, const NetImpl& net) {
  std::vector<quench::ValueId> outputs;
  for (std::size_t index = 0; index < units().size(); ++index) {
    const Unit& unit = units()[index];
    const std::string number = std::to_string(index);
    value = write.conv(value, unit, net.convs[index]->weight, "conv" + number);
    value = write.norm(value, net.norms[index], "norm" + number);
    if (unit.skip >= 0) {
      const quench::ValueId skipped = outputs[static_cast<std::size_t>(unit.skip)];
      value = write.node("Add", {value, skipped}, "add" + number).outputs.front();
    }
    value = write.activation(value, unit.activation, "act" + number);
    outputs.push_back(value);
  }
  return value;
}

}  // namespace

quench::Model to_model(const Net& net) {
  quench::Model model;
  model.opsets[""] = 13;
  model.producer_name = "quench train_fashion";
  quench::Graph& graph = model.graph;
  graph.name = "fashion";
  const quench::Dim batch{.value = -1, .symbol = "N"};
  const auto type = [&](std::vector<quench::Dim> shape) {
    return quench::ValueType::tensor(quench::DType::Float32, std::move(shape));
  };
  graph.inputs.push_back(graph.add_fresh("image", type({batch, {1}, {kSide}, {kSide}})));

  Writer write(graph);
  quench::ValueId value = add_units(write, graph.inputs.front(), *net);
  value = write.node("GlobalAveragePool", {value}, "pool").outputs.front();
  value = write.node("Flatten", {value}, "flat").outputs.front();
  quench::Node& last = write.node("Gemm",
                                  {value, write.constant("last_weight", net->last->weight),
                                   write.constant("last_bias", net->last->bias)},
                                  "scores");
  last.set("transB", std::int64_t{1});
  graph.outputs.push_back(last.outputs.front());
  graph[graph.outputs.front()].type = type({batch, {kClasses}});
  return model;
}

}  // namespace fashion
