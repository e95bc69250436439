// SPDX-License-Identifier: Apache-2.0
// Nodes and constants of a graph that a reader builds.
#include "formats/graph_maker.h"

#include <cstring>

#include "base/format.h"

namespace quench {

void GraphMaker::name_after(std::string_view op, std::string_view stem) {
  op_ = op;
  stem_ = stem.empty() ? "value" : stem;
}

std::vector<ValueId> GraphMaker::nodes(std::string_view op_type, std::vector<ValueId> inputs,
                                       std::size_t num_outputs, const NodeAttributes& attributes) {
  Node made;
  made.op_type = op_type;
  made.inputs = std::move(inputs);
  while (!made.inputs.empty() && made.inputs.back() == kNoValue) made.inputs.pop_back();
  for (const auto& [name, data] : attributes) made.set(name, data);
  for (std::size_t i = 0; i < num_outputs; ++i) {
    made.outputs.push_back(graph_.add_fresh(format("{}.{}", stem_, op_type)));
  }
  made.name = format("{}/{}", op_, graph_[made.outputs.front()].name);
  graph_.nodes.push_back(std::move(made));
  return graph_.nodes.back().outputs;
}

ValueId GraphMaker::node(std::string_view op_type, std::vector<ValueId> inputs,
                         const NodeAttributes& attributes) {
  return nodes(op_type, std::move(inputs), 1, attributes).front();
}

ValueId GraphMaker::constant(Tensor tensor) {
  return graph_.add_constant(stem_ + ".const", std::move(tensor));
}

ValueId GraphMaker::ints(const Ints& values) {
  return constant(
      Tensor::of<std::int64_t>({std::ssize(values)}, std::span<const std::int64_t>(values)));
}

ValueId GraphMaker::floats(const std::vector<float>& values) {
  return constant(Tensor::of<float>({std::ssize(values)}, std::span<const float>(values)));
}

ValueId GraphMaker::scalar(double value, DType dtype) {
  return constant(convert(Tensor::scalar(value), dtype));
}

ValueId GraphMaker::cast(ValueId value, DType dtype) {
  const Tensor* tensor = graph_.constant(value);
  if (tensor != nullptr && tensor->dtype() == dtype) return value;
  if (tensor != nullptr) return constant(convert(*tensor, dtype));
  return node("Cast", {value}, {{"to", static_cast<std::int64_t>(dtype)}});
}

ValueId GraphMaker::reshape(ValueId value, const Ints& shape) {
  return node("Reshape", {value, ints(shape)});
}

ValueId GraphMaker::transpose(ValueId value, const Ints& perm) {
  return node("Transpose", {value}, {{"perm", perm}});
}

ValueId GraphMaker::squeeze(ValueId value, const Ints& axes) {
  return node("Squeeze", {value, ints(axes)});
}

ValueId GraphMaker::unsqueeze(ValueId value, const Ints& axes) {
  return node("Unsqueeze", {value, ints(axes)});
}

ValueId GraphMaker::reduce(std::string_view op_type, ValueId value, const Ints& axes, bool keep) {
  NodeAttributes attributes{{"keepdims", std::int64_t{keep}}};
  if (op_type == "ReduceSum") return node(op_type, {value, ints(axes)}, attributes);
  attributes.emplace_back("axes", axes);
  return node(op_type, {value}, attributes);
}

ValueId GraphMaker::slice(ValueId value, std::int64_t axis, std::int64_t start, std::int64_t end) {
  return node("Slice", {value, ints({start}), ints({end}), ints({axis})});
}

ValueId GraphMaker::size_of(ValueId value, std::int64_t axis) {
  return node("Gather", {node("Shape", {value}), ints({axis})}, {{"axis", std::int64_t{0}}});
}

ValueId GraphMaker::clip(ValueId value, double min, double max) {
  return node("Clip", {value, scalar(min), scalar(max)});
}

void GraphMaker::rename(ValueId value, const std::string& name) {
  if (graph_[value].name == name) return;
  const ValueId before = graph_.find(name);
  if (before != kNoValue) {
    std::string other = name + "_1";
    for (int i = 2; graph_.find(other) != kNoValue; ++i) other = format("{}_{}", name, i);
    graph_.rename(before, other);
  }
  graph_.rename(value, name);
}

Tensor permuted(const Tensor& tensor, const Ints& perm) {
  const auto rank = perm.size();
  Shape shape(rank);
  Ints strides(rank), source(rank, 1);
  for (std::size_t i = rank; i-- > 1;) source[i - 1] = source[i] * tensor.shape()[i];
  for (std::size_t i = 0; i < rank; ++i) {
    shape[i] = tensor.shape()[static_cast<std::size_t>(perm[i])];
    strides[i] = source[static_cast<std::size_t>(perm[i])];
  }
  Tensor result = Tensor::zeros(tensor.dtype(), shape);
  if (result.size() == 0) return result;
  const std::size_t width = tensor.bytes().size() / static_cast<std::size_t>(tensor.size());
  const std::byte* from = tensor.bytes().data();
  std::byte* to = result.mutable_bytes().data();
  Ints at(rank, 0);
  std::int64_t offset = 0;
  for (std::int64_t i = 0; i < result.size(); ++i, to += width) {
    std::memcpy(to, from + static_cast<std::size_t>(offset) * width, width);
    for (std::size_t d = rank; d-- > 0;) {
      offset += strides[d];
      if (++at[d] < shape[d]) break;
      offset -= strides[d] * shape[d];
      at[d] = 0;
    }
  }
  return result;
}

}  // namespace quench
