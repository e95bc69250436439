// SPDX-License-Identifier: Apache-2.0
// Convolutions by libtorch.
#include "exec/engine/kernels/conv.h"

#include <algorithm>

namespace quench::exec {
namespace {

/// The number of spatial axes: from an attribute or an input's type; 2 when nothing tells.
std::optional<std::size_t> spatial_rank(const OpContext& context, std::size_t weight) {
  for (const char* name : {"kernel_shape", "strides", "dilations"}) {
    const Ints values = context.node.get_ints(name);
    if (!values.empty()) return values.size();
  }
  for (const std::size_t input : {weight, std::size_t{0}}) {
    const int rank = context.input_rank(input);
    if (rank > 2) return static_cast<std::size_t>(rank) - 2;
  }
  return std::nullopt;
}

Ints spatial_sizes(const at::Tensor& tensor) { return tensor.sizes().slice(2).vec(); }

void check_ranks(const at::Tensor& x, const at::Tensor& weight, std::size_t rank) {
  const auto wanted = static_cast<std::int64_t>(rank) + 2;
  if (x.dim() == wanted && weight.dim() == wanted) return;
  fail(ErrorKind::BadData, "input and weight must have rank {}, but have {} and {}", wanted,
       x.dim(), weight.dim());
}

/// A transposed convolution's pads and extra elements at the end, for one input size.
struct TransposePlan {
  Ints pads;
  Ints extra;
};

TransposePlan plan_transpose(const ConvAttributes& attributes, const Node& node, const Ints& input,
                             const Ints& kernel) {
  const Window& window = attributes.window;
  const std::size_t rank = attributes.rank;
  TransposePlan plan{.pads = window.pads, .extra = node.get_ints("output_padding")};
  plan.extra.resize(rank, 0);
  Ints wanted = node.get_ints("output_shape");
  const bool same = window.auto_pad == "SAME_UPPER" || window.auto_pad == "SAME_LOWER";
  if (window.auto_pad == "VALID") plan.pads.assign(2 * rank, 0);
  if (wanted.empty() && !same) return plan;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t extent = (kernel[i] - 1) * window.dilations[i] + 1;
    const std::int64_t full = window.strides[i] * (input[i] - 1) + plan.extra[i] + extent;
    const std::int64_t out =
        wanted.empty() ? input[i] * window.strides[i] : wanted[wanted.size() - rank + i];
    const std::int64_t total = std::max<std::int64_t>(full - out, 0);
    const std::int64_t half = total / 2;
    plan.extra[i] += std::max<std::int64_t>(out - full, 0);
    plan.pads[i] = window.auto_pad == "SAME_UPPER" ? half : total - half;
    plan.pads[rank + i] = total - plan.pads[i];
  }
  return plan;
}

at::Tensor convolve_transposed(const at::Tensor& x, const at::Tensor& weight,
                               const at::Tensor& bias, const ConvAttributes& attributes,
                               const Node& node) {
  check_ranks(x, weight, attributes.rank);
  const Window& window = attributes.window;
  const TransposePlan plan =
      plan_transpose(attributes, node, spatial_sizes(x), spatial_sizes(weight));
  const Ints zeros(attributes.rank, 0);
  const bool plain = std::ranges::all_of(plan.pads, [](auto pad) { return pad >= 0; });
  if (plain && symmetric(plan.pads) && plan.extra == zeros) {
    return at::convolution(x, weight, bias, window.strides, begins(plan.pads), window.dilations,
                           true, zeros, attributes.groups);
  }
  // The whole result, then cut or grown at each side; the bias also lies on what is grown.
  const at::Tensor whole = at::convolution(x, weight, {}, window.strides, zeros, window.dilations,
                                           true, zeros, attributes.groups);
  Ints grow(2 * attributes.rank);
  for (std::size_t i = 0; i < attributes.rank; ++i) {
    grow[i] = -plan.pads[i];
    grow[attributes.rank + i] = plan.extra[i] - plan.pads[attributes.rank + i];
  }
  const at::Tensor result = at::constant_pad_nd(whole, torch_pads(grow), 0);
  return bias.defined() ? result + along_axis(bias, 1, x.dim()) : result;
}

}  // namespace

void pad_to_2d(Window& window) {
  window.kernel.insert(window.kernel.begin(), 1);
  window.strides.insert(window.strides.begin(), 1);
  window.dilations.insert(window.dilations.begin(), 1);
  window.pads = {0, window.pads[0], 0, window.pads[1]};
}

Ints convolved_shape(const Window& window, at::IntArrayRef src, const Ints& weight) {
  const Ints pad = window.pads_for(src.slice(2), {weight[2], weight[3]});
  Ints shape = {src[0], weight[0]};
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t extent = (weight[2 + i] - 1) * window.dilations[i] + 1;
    const std::int64_t room = src[2 + i] + pad[i] + pad[2 + i];
    if (room < extent) {
      fail(ErrorKind::BadData, "an input of shape {} is smaller than the kernel",
           to_string(src.vec()));
    }
    shape.push_back((room - extent) / window.strides[i] + 1);
  }
  return shape;
}

std::optional<ConvAttributes> conv_attributes(const OpContext& context, std::size_t weight,
                                              std::string& refusal) {
  const auto no = [&](std::string why) {
    refusal = std::move(why);
    return std::nullopt;
  };
  const auto rank = spatial_rank(context, weight);
  if (!rank) return no("the number of spatial axes cannot be told before running");
  if (*rank > 3) return no(format("{} spatial axes are not supported, 3 are the most", *rank));
  ConvAttributes result{.window = Window(context.node, *rank),
                        .groups = context.node.get_int("group", 1),
                        .rank = *rank};
  const Window& window = result.window;
  if (result.groups < 1) return no(format("group must be positive, not {}", result.groups));
  if (window.strides.size() != *rank || window.dilations.size() != *rank ||
      window.pads.size() != 2 * *rank) {
    return no(format("strides, dilations or pads do not fit {} spatial axes", *rank));
  }
  const auto positive = [](const Ints& values) {
    return std::ranges::all_of(values, [](std::int64_t value) { return value > 0; });
  };
  if (!positive(window.strides) || !positive(window.dilations)) {
    return no("strides and dilations must be positive");
  }
  // Shape inference refuses them too, where the input's rank is known. Those of transposed
  // convolutions cut their result, where less than nothing can be cut.
  const bool transposed = context.node.op_type.ends_with("ConvTranspose");
  if (!transposed && std::ranges::any_of(window.pads, [](auto pad) { return pad < 0; })) {
    return no("negative pads are not supported");
  }
  constexpr std::array kKnown = {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"};
  if (std::ranges::find(kKnown, window.auto_pad) == kKnown.end()) {
    return no(format("auto_pad '{}' is not known", window.auto_pad));
  }
  return result;
}

at::Tensor convolve(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                    const ConvAttributes& attributes) {
  check_ranks(x, weight, attributes.rank);
  const Window& window = attributes.window;
  const Ints zeros(attributes.rank, 0);
  const Ints pads = window.pads_for(spatial_sizes(x), spatial_sizes(weight));
  const bool even = symmetric(pads) && std::ranges::all_of(pads, [](auto pad) { return pad >= 0; });
  const at::Tensor padded = even ? x : at::constant_pad_nd(x, torch_pads(pads), 0);
  return at::convolution(padded, weight, bias, window.strides, even ? begins(pads) : zeros,
                         window.dilations, false, zeros, attributes.groups);
}

Kernel make_reference_conv(const OpContext& context) {
  std::string refusal;
  const auto attributes = conv_attributes(context, 1, refusal);
  if (!attributes) return Kernel::Refusal{refusal};
  return [attributes = *attributes](Call& call) {
    call.set(0, convolve(call.in(0), call.in(1), call.in(2), attributes));
  };
}

Kernel make_reference_conv_transpose(const OpContext& context) {
  std::string refusal;
  const auto attributes = conv_attributes(context, 1, refusal);
  if (!attributes) return Kernel::Refusal{refusal};
  const std::size_t sizes = context.node.get_ints("output_shape").size();
  if (sizes != 0 && sizes < attributes->rank) return refuse("output_shape has {} sizes", sizes);
  Node node;  // without inputs: only the attributes count
  node.attributes = context.node.attributes;
  return [attributes = *attributes, node](Call& call) {
    call.set(0, convolve_transposed(call.in(0), call.in(1), call.in(2), attributes, node));
  };
}

}  // namespace quench::exec
