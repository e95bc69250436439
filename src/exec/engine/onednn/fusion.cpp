// SPDX-License-Identifier: Apache-2.0
// Tails of fused nodes, as oneDNN post-operations and by libtorch.
#include "exec/engine/onednn/fusion.h"

#include <array>

namespace quench::exec {
namespace {

using dnnl::algorithm;

struct Row {
  std::string_view name;
  void (*append)(dnnl::post_ops&, float alpha, float beta);
  at::Tensor (*apply)(const at::Tensor&, float alpha, float beta);
};

template <algorithm kAlgorithm>
void append_plain(dnnl::post_ops& ops, float, float) {
  ops.append_eltwise(1.0F, kAlgorithm, 0.0F, 0.0F);
}

constexpr std::array<Row, 10> kRows = {{
    {"relu", append_plain<algorithm::eltwise_relu>,
     [](const at::Tensor& x, float, float) { return at::relu(x); }},
    {"clip",
     [](dnnl::post_ops& ops, float low, float high) {
       ops.append_eltwise(1.0F, algorithm::eltwise_clip, low, high);
     },
     [](const at::Tensor& x, float low, float high) { return at::clamp(x, low, high); }},
    {"leaky_relu",
     [](dnnl::post_ops& ops, float slope, float) {
       ops.append_eltwise(1.0F, algorithm::eltwise_relu, slope, 0.0F);
     },
     [](const at::Tensor& x, float slope, float) { return at::leaky_relu(x, slope); }},
    {"sigmoid", append_plain<algorithm::eltwise_logistic>,
     [](const at::Tensor& x, float, float) { return at::sigmoid(x); }},
    {"hard_sigmoid",
     [](dnnl::post_ops& ops, float slope, float offset) {
       ops.append_eltwise(1.0F, algorithm::eltwise_linear, slope, offset);
       ops.append_eltwise(1.0F, algorithm::eltwise_clip, 0.0F, 1.0F);
     },
     [](const at::Tensor& x, float slope, float offset) {
       return at::clamp(x * slope + offset, 0.0, 1.0);
     }},
    {"hard_swish", append_plain<algorithm::eltwise_hardswish>,
     [](const at::Tensor& x, float, float) { return at::hardswish(x); }},
    {"swish",
     [](dnnl::post_ops& ops, float, float) {
       ops.append_eltwise(1.0F, algorithm::eltwise_swish, 1.0F, 0.0F);
     },
     [](const at::Tensor& x, float, float) { return at::silu(x); }},
    {"gelu", append_plain<algorithm::eltwise_gelu_erf>,
     [](const at::Tensor& x, float, float) { return at::gelu(x); }},
    {"gelu_tanh", append_plain<algorithm::eltwise_gelu_tanh>,
     [](const at::Tensor& x, float, float) { return at::gelu(x, "tanh"); }},
    {"tanh", append_plain<algorithm::eltwise_tanh>,
     [](const at::Tensor& x, float, float) { return at::tanh(x); }},
}};

const Row& row_of(const std::string& activation) {
  for (const Row& row : kRows) {
    if (row.name == activation) return row;
  }
  fail(ErrorKind::Internal, "there is no fused activation '{}'", activation);
}

}  // namespace

Fusion Fusion::activation_of(const Node& node, std::string_view prefix) {
  FusedActivation given = FusedActivation::of(node, prefix);
  return {.activation = std::move(given.name), .alpha = given.alpha, .beta = given.beta};
}

Fusion Fusion::of(const Node& node) {
  Fusion result = activation_of(node);
  if (node.input(FloatLayerNode::kResidual) != kNoValue) {
    result.residual = node.get_string("residual", "before") == "after" ? Residual::AfterActivation
                                                                       : Residual::BeforeActivation;
  }
  return result;
}

void append_activation(dnnl::post_ops& ops, const Fusion& fusion) {
  row_of(fusion.activation).append(ops, fusion.alpha, fusion.beta);
}

dnnl::primitive_attr attributes_for(const Fusion& fusion, ResidualForm form,
                                    const dnnl::memory::desc& dst) {
  dnnl::post_ops ops;
  const auto add_residual = [&] {
    if (form == ResidualForm::InDestination) {
      ops.append_sum();
    } else {
      ops.append_binary(algorithm::binary_add, dst);
    }
  };
  if (fusion.residual == Residual::BeforeActivation) add_residual();
  if (!fusion.activation.empty()) append_activation(ops, fusion);
  if (fusion.residual == Residual::AfterActivation) add_residual();
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(ops);
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

int residual_argument(const Fusion& fusion) {
  int position = 0;
  if (fusion.residual == Residual::AfterActivation && !fusion.activation.empty()) {
    position = fusion.activation == "hard_sigmoid" ? 2 : 1;
  }
  return DNNL_ARG_ATTR_MULTIPLE_POST_OP(position) | DNNL_ARG_SRC_1;
}

at::Tensor apply(const Fusion& fusion, at::Tensor result, const at::Tensor& residual) {
  if (fusion.residual == Residual::BeforeActivation) result = result + residual;
  if (!fusion.activation.empty()) {
    result = row_of(fusion.activation).apply(result, fusion.alpha, fusion.beta);
  }
  if (fusion.residual == Residual::AfterActivation) result = result + residual;
  return result;
}

Kernel with_tail(Kernel kernel, const Fusion& fusion) {
  if (fusion.empty() || !kernel.run) return kernel;
  return [run = std::move(kernel.run), fusion](Call& call) {
    const at::Tensor residual = call.in(FloatLayerNode::kResidual);
    run(call);
    call.set(0, apply(fusion, call.out(0), residual));
  };
}

}  // namespace quench::exec
