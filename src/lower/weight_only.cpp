// SPDX-License-Identifier: Apache-2.0
// Integer weights in ONNX's own operators: DequantizeLinear before the reader, and for embeddings
// a Gather of integers, so that only the rows that are asked for are dequantised.
#include "lower/weight_only.h"

#include "base/format.h"
#include "quench/lower.h"

namespace quench::lower {
namespace {

/// Block sizes, and integers that are not of 8 bits.
constexpr std::int64_t kBlockOpset = 21;

/// One number for each index of `axis`, shaped to broadcast along it.
Tensor beside_axis(const Tensor& numbers, std::size_t axis, std::size_t rank) {
  Shape shape(rank, 1);
  shape[axis] = numbers.size();
  return numbers.reshaped(std::move(shape));
}

/// Gather takes no 4-bit integers, and Cast and Mul would need one more type for float16.
bool can_gather(const plan::WeightSite& site, const quant::QuantWeight& weight, DType dtype) {
  const bool along = weight.spec.axis < 0 || weight.spec.axis == site.channel_axis;
  return weight.spec.block == 0 && along && dtype == DType::Float32 &&
         weight.integers.dtype() != DType::Int4;
}

}  // namespace

WeightWriter::WeightWriter(Model& model) : model_(model), graph_(model.graph), uses_(model.graph) {
  for (const Node& node : graph_.nodes) {
    names_.insert(node.name);
    for (std::string& name : captured_names(node)) captured_.insert(std::move(name));
  }
}

Node WeightWriter::make(std::string op_type, std::vector<ValueId> inputs, ValueId output) {
  Node node;
  const std::string stem = format("{}_{}", graph_[output].name, op_type);
  node.name = stem;
  for (int i = 1; !names_.insert(node.name).second; ++i) node.name = format("{}_{}", stem, i);
  node.op_type = std::move(op_type);
  node.inputs = std::move(inputs);
  node.outputs = {output};
  return node;
}

WeightWriter::Stored WeightWriter::store(ValueId value, const quant::QuantWeight& weight) {
  const std::string name = graph_[value].name;
  Stored stored;
  stored.name = name;
  stored.rank = graph_[value].constant->rank();
  stored.axis = weight.spec.axis;
  stored.block = weight.spec.block;
  stored.dtype = graph_[value].constant->dtype();
  stored.integers = graph_.add_constant(name + "_quantized", weight.integers);
  graph_[stored.integers].form =
      graph_[value].form == ConstantForm::External ? ConstantForm::External : ConstantForm::Raw;
  stored.scale = graph_.add_constant(name + "_scale", weight.scale);
  if (weight.zero_point.defined()) {
    stored.zero_point = graph_.add_constant(name + "_zero_point", weight.zero_point);
  }
  if (weight.spec.block > 0 || weight.integers.dtype() != DType::Int8) opset_ = kBlockOpset;
  return stored;
}

void WeightWriter::give_up(ValueId value, std::size_t readers) {
  const auto index = static_cast<std::size_t>(value);
  const bool wanted = uses_.is_output[index] || uses_.consumers[index].size() > readers ||
                      captured_.contains(graph_[value].name);
  graph_[value].constant->drop();
  if (wanted) return;
  std::erase(graph_.inputs, value);  // where old exporters list constants
  graph_[value].constant.reset();
}

void WeightWriter::replace(const std::vector<plan::WeightSite>& sites,
                           const quant::QuantWeight& weight) {
  const ValueId value = node_of(sites.front()).inputs[sites.front().input];
  const Stored stored = store(value, weight);
  for (const plan::WeightSite& site : sites) {
    const bool gathers = node_of(site).op_type == "Gather";
    if (gathers && can_gather(site, weight, stored.dtype)) {
      gather_integers(site, stored);
    } else {
      read_dequantized(site, stored);
    }
  }
  give_up(value, sites.size());
}

void WeightWriter::read_dequantized(const plan::WeightSite& site, const Stored& stored) {
  const std::string& name = stored.name;
  ValueId output = graph_.add_fresh(name + "_DequantizeLinear_Output");
  std::vector<ValueId> inputs = {stored.integers, stored.scale};
  if (stored.zero_point != kNoValue) inputs.push_back(stored.zero_point);
  Node node = make("DequantizeLinear", std::move(inputs), output);
  if (stored.axis >= 0) node.set("axis", static_cast<std::int64_t>(stored.axis));
  if (stored.block > 0) node.set("block_size", stored.block);
  before_[place_of(site)].push_back(std::move(node));
  if (stored.dtype != DType::Float32) {
    const ValueId narrow = graph_.add_fresh(name + "_Cast_Output");
    Node cast = make("Cast", {output}, narrow);
    cast.set("to", static_cast<std::int64_t>(stored.dtype));
    before_[place_of(site)].push_back(std::move(cast));
    output = narrow;
  }
  node_of(site).inputs[site.input] = output;
}

/// The rows of a small table that belong to the rows gathered.
ValueId WeightWriter::gather_beside(const plan::WeightSite& site, std::size_t rank, ValueId table,
                                    const char* what) {
  const Node& gather = node_of(site);
  const ValueId shaped = graph_.add_constant(
      graph_[table].name + "_rows",
      beside_axis(*graph_.constant(table), static_cast<std::size_t>(site.channel_axis), rank));
  const ValueId output = graph_.add_fresh(format("{}_{}", graph_[gather.outputs[0]].name, what));
  Node node = make("Gather", {shaped, gather.inputs[1]}, output);
  node.set("axis", static_cast<std::int64_t>(site.channel_axis));
  after_[place_of(site)].push_back(std::move(node));
  return output;
}

// Without DequantizeLinear: ONNX Runtime moves that of computed rows through what reads them, with
// a QuantizeLinear of its own behind it, which makes uint8 of int8 where there is no zero point
// and, in operator version 21, fails where there is one.
void WeightWriter::gather_integers(const plan::WeightSite& site, const Stored& stored) {
  const ValueId result = node_of(site).outputs[0];
  const std::string name = graph_[result].name;
  const ValueId integers = graph_.add_fresh(name + "_integers");
  const bool by_row = stored.axis >= 0;
  const auto to_float = [&](ValueId from) {
    const ValueId output = graph_.add_fresh(graph_[from].name + "_float");
    Node cast = make("Cast", {from}, output);
    cast.set("to", static_cast<std::int64_t>(DType::Float32));
    after_[place_of(site)].push_back(std::move(cast));
    return output;
  };
  ValueId steps = to_float(integers);
  if (stored.zero_point != kNoValue) {
    const ValueId zero =
        to_float(by_row ? gather_beside(site, stored.rank, stored.zero_point, "zero_point")
                        : stored.zero_point);
    const ValueId moved = graph_.add_fresh(name + "_moved");
    after_[place_of(site)].push_back(make("Sub", {steps, zero}, moved));
    steps = moved;
  }
  const ValueId scale =
      by_row ? gather_beside(site, stored.rank, stored.scale, "scale") : stored.scale;
  after_[place_of(site)].push_back(make("Mul", {steps, scale}, result));
  Node& gather = node_of(site);
  gather.inputs[0] = stored.integers;
  gather.outputs[0] = integers;
}

void WeightWriter::place() {
  std::vector<Node> nodes;
  const auto append = [&](std::map<NodeId, std::vector<Node>>& from, NodeId id) {
    const auto found = from.find(id);
    if (found == from.end()) return;
    for (Node& node : found->second) nodes.push_back(std::move(node));
  };
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    append(before_, static_cast<NodeId>(i));
    nodes.push_back(std::move(graph_.nodes[i]));
    append(after_, static_cast<NodeId>(i));
  }
  graph_.nodes = std::move(nodes);
  compact(graph_, {});
}

void WeightWriter::finish() {
  place();
  if (model_.opset() < opset_) lift_opset(model_, opset_);
  infer_types(model_);
  verify(model_);
}

}  // namespace quench::lower
