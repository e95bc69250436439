// SPDX-License-Identifier: Apache-2.0
// Nodes and random weights for generated models.
#include "generate/builder.h"

namespace quench::generate {
namespace {

std::vector<Dim> dims(const Ints& shape, const std::vector<std::string>& symbols) {
  std::vector<Dim> result;
  std::size_t used = 0;
  for (const std::int64_t size : shape) {
    const bool known = size >= 0;
    result.push_back({.value = size, .symbol = known ? "" : symbols.at(used++)});
  }
  return result;
}

constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15U;

// splitmix64: a weight costs a nanosecond, and the files are the same on every machine.
float uniform(std::uint64_t state) {
  std::uint64_t mixed = state;
  mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
  mixed ^= mixed >> 31U;
  return static_cast<float>(mixed >> 40U) * 0x1p-24F;
}

}  // namespace

Builder::Builder(const Options& options, const std::string& name) : state_(options.seed) {
  model_.opsets[""] = options.opset;
  model_.producer_name = "quench_generate";
  model_.graph.name = name;
}

ValueId Builder::input(const std::string& name, DType dtype, const Ints& shape,
                       const std::vector<std::string>& symbols) {
  const ValueId id = model_.graph.add_fresh(name, ValueType::tensor(dtype, dims(shape, symbols)));
  model_.graph.inputs.push_back(id);
  return id;
}

void Builder::output(ValueId value, const std::string& name, const Ints& shape,
                     const std::vector<std::string>& symbols) {
  model_.graph.rename(value, name);
  model_.graph[value].type = ValueType::tensor(DType::Float32, dims(shape, symbols));
  model_.graph.outputs.push_back(value);
}

// Drawn when they are wanted, so that a model may be larger than memory.
ValueId Builder::spread(const Shape& shape, double low, double high) {
  const auto base = static_cast<float>(low);
  const auto width = static_cast<float>(high - low);
  const auto draw = [=, state = state_]() {
    Tensor tensor = Tensor::zeros(DType::Float32, shape);
    std::uint64_t at = state;
    for (float& element : tensor.mutable_data<float>()) {
      element = base + width * uniform(at += kStep);
    }
    return tensor;
  };
  state_ += kStep * static_cast<std::uint64_t>(*num_elements(shape));
  return model_.graph.add_constant("weight", Tensor::made(DType::Float32, shape, draw));
}

ValueId Builder::weight(const Shape& shape, double limit) { return spread(shape, -limit, limit); }

ValueId Builder::ints(const Ints& values) {
  const Shape shape = {static_cast<std::int64_t>(values.size())};
  return model_.graph.add_constant("ints", Tensor::of<std::int64_t>(shape, values));
}

ValueId Builder::number(float value) {
  return model_.graph.add_constant("number", Tensor::scalar<float>(value));
}

Node& Builder::node(const std::string& op_type, std::vector<ValueId> inputs) {
  const std::string name = op_type + "_" + std::to_string(model_.graph.nodes.size());
  Node& added = model_.graph.add_node(op_type, std::move(inputs), {name});
  added.name = name;
  return added;
}

ValueId Builder::apply(const std::string& op_type, std::vector<ValueId> inputs) {
  return node(op_type, std::move(inputs)).outputs.front();
}

}  // namespace quench::generate
