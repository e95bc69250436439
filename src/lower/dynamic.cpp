// SPDX-License-Identifier: Apache-2.0
// Dynamic quantisation in ONNX's own operators.
#include "lower/dynamic.h"

#include "base/format.h"
#include "ops/facts.h"

namespace quench::lower {
namespace {

constexpr std::int64_t kAxesAreAnInput = 18;
constexpr float kLargestStep = 127.0F;
constexpr std::uint8_t kMiddle = 128;
/// Rows of zeros get this for their greatest magnitude.
constexpr float kTiny = 1e-30F;

bool is_gemm(const Node& node) { return node.op_type == "Gemm"; }

Tensor scaled(const Tensor& numbers, float factor) {
  Tensor result = numbers;
  for (float& value : result.mutable_data<float>()) value *= factor;
  return result;
}

std::string refuse_gemm(const Graph& graph, const Node& node) {
  if (node.get_int("transA", 0) != 0) return "its activation is transposed";
  const bool plain_bias = node.input(2) == kNoValue || node.get_float("beta", 1.0F) == 1.0F ||
                          graph.constant(node.input(2)) != nullptr;
  return plain_bias ? "" : "its bias is computed and scaled";
}

}  // namespace

std::string refuse_dynamic(const Graph& graph, const plan::WeightSite& site) {
  const Node& node = site.node_in(graph);
  const Tensor& weight = site.weight_in(graph);
  if (ops::facts(node).weight != ops::WeightKind::Matrix) {
    return "dynamic quantisation is for matrix products and embeddings";
  }
  if (site.input != 1) return "its weight stands on the left";
  if (weight.rank() != 2) return "its weight is no matrix";
  if (weight.dtype() != DType::Float32) return "DynamicQuantizeLinear reads float32 only";
  if (graph.constant(node.input(0)) != nullptr) return "all it reads is constant";
  return is_gemm(node) ? refuse_gemm(graph, node) : "";
}

Tensor product_matrix(const Graph& graph, const plan::WeightSite& site) {
  const Node& node = site.node_in(graph);
  const Tensor weight = site.weight_in(graph).held();
  if (!is_gemm(node) || node.get_int("transB", 0) == 0) return weight;
  const std::int64_t rows = weight.shape()[0];
  const std::int64_t columns = weight.shape()[1];
  Tensor result = Tensor::zeros(DType::Float32, {columns, rows});
  const float* src = weight.data<float>().data();
  float* dst = result.mutable_data<float>().data();
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) dst[j * rows + i] = src[i * columns + j];
  }
  return result;
}

DynamicWriter::DynamicWriter(Model& model, ActivationScales scales,
                             const std::vector<plan::WeightSite>& products)
    : WeightWriter(model), scales_(scales) {
  for (const plan::WeightSite& site : products) {
    const auto [place, fresh] = first_reader_.try_emplace(node_of(site).inputs[0], place_of(site));
    if (!fresh) place->second = std::min(place->second, place_of(site));
  }
}

DynamicWriter::Integers DynamicWriter::by_layer(ValueId activation, std::vector<Node>& nodes) {
  const std::string name = graph_[activation].name;
  const Integers made{.integers = graph_.add_fresh(name + "_quantized"),
                      .scale = graph_.add_fresh(name + "_scale"),
                      .zero_point = graph_.add_fresh(name + "_zero_point")};
  Node node = make("DynamicQuantizeLinear", {activation}, made.integers);
  node.outputs = {made.integers, made.scale, made.zero_point};
  nodes.push_back(std::move(node));
  return made;
}

DynamicWriter::Integers DynamicWriter::by_row(ValueId activation, std::vector<Node>& nodes) {
  const std::string name = graph_[activation].name;
  const auto step = [&](const char* op, std::vector<ValueId> inputs, const char* what) {
    const ValueId output = graph_.add_fresh(format("{}_{}", name, what));
    nodes.push_back(make(op, std::move(inputs), output));
    return output;
  };
  const auto number = [&](const char* what, float value) {
    return graph_.add_constant(what, Tensor::scalar(value));
  };
  if (const auto found = factors_.find(activation); found != factors_.end()) {
    const auto count = static_cast<std::int64_t>(found->second.size());
    const ValueId factors = graph_.add_constant(
        name + "_factors", Tensor::of<float>({count}, std::span<const float>(found->second)));
    activation = step("Mul", {activation, factors}, "balanced");
  }
  std::vector<ValueId> reduced = {step("Abs", {activation}, "magnitude")};
  if (model_.opset() >= kAxesAreAnInput) {
    reduced.push_back(graph_.add_constant("row_axes", Tensor::of<std::int64_t>({1}, {-1})));
  }
  const ValueId greatest = step("ReduceMax", std::move(reduced), "row_max");
  nodes.back().set("keepdims", std::int64_t{1});
  if (model_.opset() < kAxesAreAnInput) nodes.back().set("axes", std::vector<std::int64_t>{-1});
  const ValueId positive = step("Max", {greatest, number("least_row", kTiny)}, "row_range");
  Integers made;
  made.scale = step("Mul", {positive, number("row_step", 1.0F / kLargestStep)}, "row_scale");
  const ValueId steps = step("Div", {activation, made.scale}, "steps");
  const ValueId whole = step("Round", {steps}, "rounded");
  // Unsigned with its zero in the middle: the fast kernels of x86 multiply those with int8.
  const ValueId moved = step("Add", {whole, number("row_middle", kMiddle)}, "moved");
  made.integers = step("Cast", {moved}, "quantized");
  nodes.back().set("to", static_cast<std::int64_t>(DType::UInt8));
  made.zero_point = graph_.add_constant("row_zero_point", Tensor::scalar(kMiddle));
  return made;
}

const DynamicWriter::Integers& DynamicWriter::quantized(ValueId activation) {
  const auto [place, fresh] = quantized_.try_emplace(activation);
  if (!fresh) return place->second;
  std::vector<Node>& nodes = before_[first_reader_.at(activation)];
  place->second =
      scales_ == ActivationScales::Layer ? by_layer(activation, nodes) : by_row(activation, nodes);
  return place->second;
}

void DynamicWriter::multiply(const std::vector<plan::WeightSite>& sites,
                             const quant::QuantWeight& weight) {
  const ValueId value = node_of(sites.front()).inputs[sites.front().input];
  const ValueId integers = graph_.add_constant(graph_[value].name + "_quantized", weight.integers);
  graph_[integers].form =
      graph_[value].form == ConstantForm::External ? ConstantForm::External : ConstantForm::Raw;
  const std::string name = graph_[value].name;
  for (const plan::WeightSite& site : sites) rewrite(site, integers, name, weight.scale);
  give_up(value, sites.size());
}

void DynamicWriter::rewrite(const plan::WeightSite& site, ValueId integers,
                            const std::string& weight, const Tensor& scale) {
  const Integers x = quantized(node_of(site).inputs[0]);
  const std::string name = graph_[node_of(site).outputs[0]].name;
  const bool gemm = is_gemm(node_of(site));
  const float alpha = gemm ? node_of(site).get_float("alpha", 1.0F) : 1.0F;
  const ValueId weight_scale = graph_.add_constant(weight + "_scale", scaled(scale, alpha));
  std::vector<Node>& after = after_[place_of(site)];
  const ValueId sums = graph_.add_fresh(name + "_sums");
  const ValueId reals = graph_.add_fresh(name + "_float_sums");
  Node cast = make("Cast", {sums}, reals);
  cast.set("to", static_cast<std::int64_t>(DType::Float32));
  after.push_back(std::move(cast));
  const ValueId result = node_of(site).outputs[0];
  const ValueId bias = gemm ? node_of(site).input(2) : kNoValue;
  const ValueId product = bias == kNoValue ? result : graph_.add_fresh(name + "_product");
  const ValueId between = graph_.add_fresh(name + "_scales");
  if (scales_ == ActivationScales::Layer) {
    after.push_back(make("Mul", {x.scale, weight_scale}, between));
    after.push_back(make("Mul", {reals, between}, product));
  } else {
    // ONNX Runtime takes a product of scales for that of whole tensors and fuses it: rows must
    // not look like that.
    after.push_back(make("Mul", {reals, weight_scale}, between));
    after.push_back(make("Mul", {between, x.scale}, product));
  }
  if (bias != kNoValue) {
    const float beta = node_of(site).get_float("beta", 1.0F);
    ValueId added = bias;
    if (beta != 1.0F) {
      added =
          graph_.add_constant(graph_[bias].name + "_scaled", scaled(*graph_.constant(bias), beta));
    }
    after.push_back(make("Add", {product, added}, result));
  }
  Node& node = node_of(site);
  node.op_type = "MatMulInteger";
  node.attributes.clear();
  node.inputs = {x.integers, integers, x.zero_point};
  node.outputs = {sums};
}

}  // namespace quench::lower
