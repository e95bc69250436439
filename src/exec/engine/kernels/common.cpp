// SPDX-License-Identifier: Apache-2.0
// Small helpers that most kernels share.
#include "exec/engine/kernels/common.h"

#include <algorithm>

namespace quench::exec {

std::int64_t wrap_axis(std::int64_t axis, std::int64_t rank) {
  const std::int64_t limit = std::max<std::int64_t>(rank, 1);
  if (axis < -limit || axis >= limit) {
    fail(ErrorKind::BadData, "axis {} does not exist in a tensor of rank {}", axis, rank);
  }
  return axis < 0 ? axis + limit : axis;
}

Ints wrap_axes(Ints axes, std::int64_t rank) {
  for (std::int64_t& axis : axes) axis = wrap_axis(axis, rank);
  return axes;
}

Ints to_ints(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.to(at::kCPU, at::kLong).contiguous();
  const auto* data = dense.data_ptr<std::int64_t>();
  return {data, data + dense.numel()};
}

std::vector<double> to_doubles(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.to(at::kCPU, at::kDouble).contiguous();
  const auto* data = dense.data_ptr<double>();
  return {data, data + dense.numel()};
}

std::int64_t to_int(const at::Tensor& tensor) {
  if (tensor.numel() == 0) fail(ErrorKind::BadData, "expected one integer, got an empty tensor");
  return tensor.reshape({-1})[0].to(at::kLong).item<std::int64_t>();
}

double to_double(const at::Tensor& tensor) {
  if (tensor.numel() == 0) fail(ErrorKind::BadData, "expected one number, got an empty tensor");
  return tensor.reshape({-1})[0].to(at::kDouble).item<double>();
}

IntsSource::IntsSource(const OpContext& context, std::string_view name, std::size_t input,
                       std::int64_t input_since)
    : fixed(context.node.get_ints(name)),
      index(input),
      from_input(context.opset >= input_since),
      given_(context.node.find(name) != nullptr) {}

std::optional<Ints> IntsSource::get(const Call& call) const {
  if (from_input) {
    if (!call.has(index)) return std::nullopt;
    return to_ints(call.in(index));
  }
  if (!given_) return std::nullopt;
  return fixed;
}

at::Tensor along_axis(const at::Tensor& vector, std::int64_t axis, std::int64_t rank) {
  if (vector.numel() == 1) return vector.reshape({});
  Ints shape(static_cast<std::size_t>(rank), 1);
  shape[static_cast<std::size_t>(axis)] = vector.numel();
  return vector.reshape(shape);
}

at::Tensor wrap_indices(const at::Tensor& indices, std::int64_t size) {
  at::Tensor wrapped = indices.to(at::kLong);
  if (wrapped.numel() == 0) return wrapped;
  const auto low = wrapped.min().item<std::int64_t>();
  const auto high = wrapped.max().item<std::int64_t>();
  if (low < -size || high >= size) {
    fail(ErrorKind::BadData, "index {} lies outside an axis of {} elements",
         high >= size ? high : low, size);
  }
  return low < 0 ? at::where(wrapped < 0, wrapped + size, wrapped) : wrapped;
}

Window::Window(const Node& node, std::size_t rank)
    : kernel(node.get_ints("kernel_shape")),
      strides(node.get_ints("strides")),
      pads(node.get_ints("pads")),
      dilations(node.get_ints("dilations")),
      auto_pad(node.get_string("auto_pad", "NOTSET")) {
  if (strides.empty()) strides.assign(rank, 1);
  if (dilations.empty()) dilations.assign(rank, 1);
  if (pads.empty()) pads.assign(2 * rank, 0);
}

Ints Window::pads_for(at::IntArrayRef spatial, const Ints& kernel_shape) const {
  if (auto_pad == "NOTSET") return pads;
  const std::size_t rank = spatial.size();
  Ints result(2 * rank, 0);
  if (auto_pad == "VALID") return result;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t out = (spatial[i] + strides[i] - 1) / strides[i];
    const std::int64_t extent = (kernel_shape[i] - 1) * dilations[i] + 1;
    const std::int64_t total =
        std::max<std::int64_t>((out - 1) * strides[i] + extent - spatial[i], 0);
    const std::int64_t smaller = total / 2;
    result[i] = auto_pad == "SAME_UPPER" ? smaller : total - smaller;
    result[rank + i] = total - result[i];
  }
  return result;
}

bool symmetric(const Ints& pads) {
  const auto half = static_cast<std::ptrdiff_t>(pads.size() / 2);
  return std::equal(pads.begin(), pads.begin() + half, pads.begin() + half);
}

Ints torch_pads(const Ints& pads) {
  const std::size_t rank = pads.size() / 2;
  Ints result;
  for (std::size_t i = rank; i-- > 0;) {
    result.push_back(pads[i]);
    result.push_back(pads[rank + i]);
  }
  return result;
}

Ints begins(const Ints& pads) {
  return {pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(pads.size() / 2)};
}

}  // namespace quench::exec
