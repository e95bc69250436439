// SPDX-License-Identifier: Apache-2.0
// Gathers what scales are found from, one weight at a time.
#include "calibrate/shards.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/format.h"
#include "base/share.h"

namespace quench::calibrate {
namespace {

constexpr std::string_view kWhat = "weights";

/// Parts of one shape but for `axis`, one behind the other along it.
Tensor join(const std::vector<Tensor>& parts, std::size_t axis) {
  Shape shape = parts.front().shape();
  shape[axis] = 0;
  for (const Tensor& part : parts) shape[axis] += part.shape()[axis];
  Tensor joined = Tensor::zeros(parts.front().dtype(), shape);
  std::size_t rows = 1;
  for (std::size_t i = 0; i < axis; ++i) rows *= static_cast<std::size_t>(shape[i]);
  std::byte* to = joined.mutable_bytes().data();
  for (std::size_t row = 0; row < rows; ++row) {
    for (const Tensor& part : parts) {
      const std::size_t size = part.bytes().size() / rows;
      std::memcpy(to, part.bytes().data() + row * size, size);
      to += size;
    }
  }
  return joined;
}

Bytes encoded(const Tensor& part) {
  Packer packer;
  packer.put_all(part.shape());
  packer.put(part.bytes());
  return packer.take();
}

Tensor decoded(const Bytes& bytes, DType dtype) {
  Unpacker unpacker(bytes);
  Tensor part = Tensor::zeros(dtype, unpacker.all<std::int64_t>());
  const std::span<const std::byte> data = unpacker.get();
  if (data.size() != part.bytes().size()) {
    fail(ErrorKind::BadConfig, "the parts of a weight have different types of elements");
  }
  std::ranges::copy(data, part.mutable_bytes().begin());
  return part;
}

}  // namespace

SplitWeights::SplitWeights(const Model& model, const QuantPlan& plan)
    : model_(model), plan_(plan), parallel_(model.graph), kinds_(plan.weights.size(), Kind::Own) {
  const std::set<std::string> split = parallel_.split_values();
  for (std::size_t i = 0; i < kinds_.size(); ++i) {
    const WeightPlan& weight = plan.weights[i];
    const Node& node = node_called(model.graph, weight.node);
    if (weight.input == 1 && !parallel_.kind(node).empty()) {
      if (axis(i) >= 0 && axis(i) != weight.spec.axis) kinds_[i] = Kind::AlongAxis;
    } else if (split.contains(weight.node) && weight.spec.axis < 0 && part(i).size() > 1) {
      kinds_[i] = Kind::Elements;
    }
  }
}

const Tensor& SplitWeights::part(std::size_t i) const {
  const WeightPlan& weight = plan_.weights[i];
  const Node& node = node_called(model_.graph, weight.node);
  const Tensor* found = model_.graph.constant(node.input(weight.input));
  if (found != nullptr) return *found;
  fail(ErrorKind::Internal, "input {} of the {} is not a constant", weight.input,
       label(model_.graph, node));
}

int SplitWeights::axis(std::size_t i) const {
  return parallel_.split_axis(node_called(model_.graph, plan_.weights[i].node), part(i).shape());
}

Tensor SplitWeights::whole(Ranks& shards, std::size_t i) const {
  const Node& node = node_called(model_.graph, plan_.weights[i].node);
  const Tensor& own = part(i);
  const auto along = static_cast<std::size_t>(kinds_[i] == Kind::AlongAxis ? axis(i) : 0);
  Shape others = own.shape();
  others[along] = 0;
  std::vector<Tensor> parts;
  for (const Bytes& bytes : gather(shards, kWhat, encoded(own))) {
    parts.push_back(decoded(bytes, own.dtype()));
    Shape shape = parts.back().shape();
    if (shape.size() == others.size()) shape[along] = 0;
    if (shape == others) continue;
    fail(ErrorKind::BadModel,
         "the {}: rank {} has a weight of {}, rank {} one of {}; they are no "
         "parts of one weight along axis {}",
         label(model_.graph, node), shards.rank(), to_string(own.shape()), parts.size() - 1,
         to_string(parts.back().shape()), along);
  }
  return join(parts, along);
}

namespace {

/// Machines that round unlike find scales that differ in their last bits.
void share_values(Ranks& shards, QuantSolution& solution) {
  Packer own;
  for (const auto& [name, params] : solution.values) {
    own.put(name);
    own.put_all(params.scale);
    own.put_all(params.zero_point);
  }
  const Bytes first = broadcast(shards, "scales", shards.rank() == 0 ? own.take() : Bytes());
  for (Unpacker unpacker(first); !unpacker.at_end();) {
    const auto value = solution.values.find(unpacker.text());
    if (value == solution.values.end()) {
      fail(ErrorKind::BadConfig, "rank 0 quantises other activations than rank {}", shards.rank());
    }
    value->second.scale = unpacker.all<float>();
    value->second.zero_point = unpacker.all<std::int32_t>();
  }
}

}  // namespace

void share_scales(const Model& model, const QuantPlan& plan, Ranks& shards,
                  QuantSolution& solution) {
  share_values(shards, solution);
  const SplitWeights split(model, plan);
  for (std::size_t i = 0; i < plan.weights.size(); ++i) {
    if (!split.shared(i)) continue;
    std::vector<float>& scale = solution.weights.at(plan.weights[i].key()).scale;
    const auto own = std::as_bytes(std::span(scale));
    for (const Bytes& bytes : gather(shards, "scales", Bytes(own.begin(), own.end()))) {
      if (bytes.size() != own.size()) {
        fail(ErrorKind::BadConfig, "ranks have different numbers of scales for the {}",
             label(model.graph, node_called(model.graph, plan.weights[i].node)));
      }
      for (std::size_t c = 0; c < scale.size(); ++c) {
        float other = 0;
        std::memcpy(&other, bytes.data() + c * sizeof(float), sizeof(float));
        scale[c] = std::max(scale[c], other);
      }
    }
  }
}

}  // namespace quench::calibrate
