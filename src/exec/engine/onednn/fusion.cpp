// SPDX-License-Identifier: Apache-2.0
// Activations of fused nodes, as oneDNN post-operations and by libtorch.
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

void append_activation(dnnl::post_ops& ops, const FusedActivation& activation) {
  row_of(activation.name).append(ops, activation.alpha, activation.beta);
}

dnnl::primitive_attr attributes_for(const FusedActivation& activation) {
  dnnl::post_ops ops;
  if (!activation.name.empty()) append_activation(ops, activation);
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(ops);
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

at::Tensor apply(const FusedActivation& activation, at::Tensor result) {
  if (activation.name.empty()) return result;
  return row_of(activation.name).apply(result, activation.alpha, activation.beta);
}

Kernel with_activation(Kernel kernel, const FusedActivation& activation) {
  if (activation.name.empty() || !kernel.run) return kernel;
  return [run = std::move(kernel.run), activation](Call& call) {
    run(call);
    call.set(0, apply(activation, call.out(0)));
  };
}

}  // namespace quench::exec
