// SPDX-License-Identifier: Apache-2.0
// Layers: convolutions, products, normalisations.
#include <algorithm>

#include "base/format.h"
#include "formats/paddle/write/writer.h"

namespace quench::paddle::write {
namespace {

/// An attribute with a number for each of two or three axes.
std::vector<std::int64_t> each_axis(const NodeWriter& node, const char* attribute, std::size_t axes,
                                    std::int64_t otherwise) {
  std::vector<std::int64_t> values = node.node.get_ints(attribute);
  return values.empty() ? std::vector<std::int64_t>(axes, otherwise) : values;
}

const std::vector<Dim>& weight_dims(const NodeWriter& node) {
  const ValueType& type = node.type(1);
  if (!type.shape || !std::ranges::all_of(*type.shape, &Dim::known)) {
    node.refuse("the shape of its weight is not known");
  }
  return *type.shape;
}

/// ONNX has all beginnings and then all ends, Paddle the pair of each axis.
std::vector<std::int64_t> paddings(const NodeWriter& node, std::size_t axes) {
  const std::vector<std::int64_t> pads = each_axis(node, "pads", 2 * axes, 0);
  std::vector<std::int64_t> pairs;
  for (std::size_t i = 0; i < axes; ++i) {
    pairs.push_back(pads[i]);
    pairs.push_back(pads[i + axes]);
  }
  return pairs;
}

std::string padding_algorithm(const NodeWriter& node, const std::vector<std::int64_t>& dilations) {
  const std::string how = node.node.get_string("auto_pad", "NOTSET");
  if (how == "NOTSET") return "EXPLICIT";
  if (how == "VALID") return "VALID";
  const bool dilated = std::ranges::any_of(dilations, [](std::int64_t d) { return d != 1; });
  if (how != "SAME_UPPER" || dilated) node.refuse(format("Paddle has no padding like {}", how));
  return "SAME";
}

/// Where a layer writes to: what its bias is added to, or its result.
std::string before_bias(const NodeWriter& node) {
  return node.has(2) ? node.between("without_bias") : node.out();
}

void add_bias(const NodeWriter& node, const std::string& sum, std::int32_t axis) {
  if (!node.has(2)) return;
  node.op("elementwise_add")
      .in("X", sum)
      .in("Y", node.in(2))
      .out("Out", node.out())
      .set("axis", axis);
}

void set_windows(Op& op, const NodeWriter& node, std::size_t axes) {
  const std::vector<std::int64_t> dilations = each_axis(node, "dilations", axes, 1);
  op.set("strides", narrow(each_axis(node, "strides", axes, 1)))
      .set("paddings", narrow(paddings(node, axes)))
      .set("padding_algorithm", padding_algorithm(node, dilations))
      .set("dilations", narrow(dilations))
      .set("groups", static_cast<std::int32_t>(node.node.get_int("group", 1)));
}

void conv(const NodeWriter& node) {
  const std::vector<Dim>& dims = weight_dims(node);
  const std::size_t axes = dims.size() - 2;
  if (axes != 2 && axes != 3) node.refuse("only convolutions over two and three axes are written");
  const std::int64_t groups = node.node.get_int("group", 1);
  const bool depthwise = axes == 2 && groups > 1 && dims[1].value == 1;
  const std::string result = before_bias(node);
  Op op = node.op(axes == 3 ? "conv3d" : depthwise ? "depthwise_conv2d" : "conv2d");
  op.in("Input", node.in(0)).in("Filter", node.in(1)).out("Output", result);
  set_windows(op, node, axes);
  op.set("data_format", axes == 3 ? "NCDHW" : "NCHW");
  add_bias(node, result, 1);
}

void conv_transpose(const NodeWriter& node) {
  const std::vector<Dim>& dims = weight_dims(node);
  if (dims.size() != 4) node.refuse("only transposed convolutions over two axes are written");
  if (!node.node.get_ints("output_shape").empty()) node.refuse("it names the shape of its result");
  const std::int64_t groups = node.node.get_int("group", 1);
  const bool depthwise = groups > 1 && groups == dims[0].value && dims[1].value == 1;
  const std::string result = before_bias(node);
  Op op = node.op(depthwise ? "depthwise_conv2d_transpose" : "conv2d_transpose");
  op.in("Input", node.in(0)).in("Filter", node.in(1)).out("Output", result);
  set_windows(op, node, 2);
  op.set("output_padding", narrow(node.node.get_ints("output_padding")))
      .set("output_size", Ints{})
      .set("data_format", "NCHW");
  add_bias(node, result, 1);
}

void mat_mul(const NodeWriter& node) {
  node.op("matmul_v2")
      .in("X", node.in(0))
      .in("Y", node.in(1))
      .out("Out", node.out())
      .set("trans_x", false)
      .set("trans_y", false);
}

void scale(const NodeWriter& node, const std::string& from, const std::string& to, float factor) {
  node.op("scale")
      .in("X", from)
      .out("Out", to)
      .set("scale", factor)
      .set("bias", 0.0F)
      .set("bias_after_scale", true);
}

void gemm(const NodeWriter& node) {
  const float alpha = node.node.get_float("alpha", 1.0F);
  const float beta = node.node.get_float("beta", 1.0F);
  const std::string sum = before_bias(node);
  const std::string product = alpha == 1 ? sum : node.between("product");
  node.op("matmul_v2")
      .in("X", node.in(0))
      .in("Y", node.in(1))
      .out("Out", product)
      .set("trans_x", node.node.get_int("transA", 0) != 0)
      .set("trans_y", node.node.get_int("transB", 0) != 0);
  if (alpha != 1) scale(node, product, sum, alpha);
  if (!node.has(2)) return;
  std::string bias = node.in(2);
  if (beta != 1) {
    const std::string scaled = node.between("bias");
    scale(node, bias, scaled, beta);
    bias = scaled;
  }
  node.op("elementwise_add").in("X", sum).in("Y", bias).out("Out", node.out()).set("axis", -1);
}

void batch_normalization(const NodeWriter& node) {
  const std::string mean = node.in(3);
  const std::string variance = node.in(4);
  node.op("batch_norm")
      .in("X", node.in(0))
      .in("Scale", node.in(1))
      .in("Bias", node.in(2))
      .in("Mean", mean)
      .in("Variance", variance)
      .out("Y", node.out())
      .out("MeanOut", mean)
      .out("VarianceOut", variance)
      .out("SavedMean", node.between("saved_mean"))
      .out("SavedVariance", node.between("saved_variance"))
      .set("epsilon", node.node.get_float("epsilon", 1e-5F))
      .set("momentum", node.node.get_float("momentum", 0.9F))
      .set("data_layout", "NCHW")
      .set("is_test", true)
      .set("use_global_stats", true);
}

/// Layer normalisation takes flat scales over all axes that it normalises.
void layer_normalization(const NodeWriter& node) {
  const std::int64_t rank = node.rank(0);
  const std::int64_t axis = node.node.get_int("axis", -1);
  Op op = node.op("layer_norm");
  op.in("X", node.in(0));
  constexpr const char* kArguments[] = {"Scale", "Bias"};
  for (std::size_t i : {1, 2}) {
    if (!node.has(i)) continue;
    const Tensor* tensor = node.constant(i);
    const bool flat = tensor == nullptr || tensor->rank() == 1;
    op.in(kArguments[i - 1], flat ? node.in(i)
                                  : node.writer.parameter(node.graph()[node.node.input(i)].name,
                                                          tensor->reshaped({tensor->size()})));
  }
  op.out("Y", node.out())
      .out("Mean", node.between("mean"))
      .out("Variance", node.between("variance"))
      .set("epsilon", node.node.get_float("epsilon", 1e-5F))
      .set("begin_norm_axis", static_cast<std::int32_t>(axis < 0 ? axis + rank : axis));
}

void instance_normalization(const NodeWriter& node) {
  node.op("instance_norm")
      .in("X", node.in(0))
      .in("Scale", node.in(1))
      .in("Bias", node.in(2))
      .out("Y", node.out())
      .out("SavedMean", node.between("saved_mean"))
      .out("SavedVariance", node.between("saved_variance"))
      .set("epsilon", node.node.get_float("epsilon", 1e-5F));
}

void lp_normalization(const NodeWriter& node) {
  if (node.node.get_int("p", 2) != 2) node.refuse("Paddle has the second norm only");
  node.unary("norm")
      .out("Norm", node.between("norm"))
      .set("axis", static_cast<std::int32_t>(node.node.get_int("axis", -1)))
      .set("epsilon", 0.0F)
      .set("is_test", true);
}

void einsum(const NodeWriter& node) {
  Names operands;
  for (std::size_t i = 0; i < node.node.inputs.size(); ++i) operands.push_back(node.in(i));
  node.op("einsum")
      .in("Operands", operands)
      .out("Out", node.out())
      .set("equation", node.node.get_string("equation", ""));
}

}  // namespace

std::vector<WriteRow> layer_rows() {
  return {
      {"Conv", conv},
      {"ConvTranspose", conv_transpose},
      {"MatMul", mat_mul},
      {"Gemm", gemm},
      {"BatchNormalization", batch_normalization},
      {"LayerNormalization", layer_normalization},
      {"InstanceNormalization", instance_normalization},
      {"LpNormalization", lp_normalization},
      {"Einsum", einsum},
  };
}

}  // namespace quench::paddle::write
