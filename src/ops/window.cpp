// SPDX-License-Identifier: Apache-2.0
// Sliding windows: their attributes and how many places they take.
#include "ops/window.h"

#include <algorithm>

namespace quench::ops {
namespace {

// Far beyond any real window, and small enough that kernels' 32-bit sums of a few cannot overflow.
constexpr std::int64_t kMaxWindow = std::int64_t{1} << 28;

void check_list(const std::vector<std::int64_t>& list, std::size_t size, std::int64_t least,
                std::string_view what) {
  if (list.size() != size) {
    fail(ErrorKind::BadModel, "{} must have {} entries, but has {}", what, size, list.size());
  }
  for (const std::int64_t value : list) {
    if (value < least || value > kMaxWindow) {
      fail(ErrorKind::BadModel, "{} holds {}, which must be {} to {}", what, value, least,
           kMaxWindow);
    }
  }
}

std::vector<std::int64_t> read_list(const Node& node, std::string_view name, std::size_t size,
                                    std::int64_t otherwise) {
  auto list = node.get_ints(name);
  return list.empty() ? std::vector<std::int64_t>(size, otherwise) : list;
}

}  // namespace

Window read_window(const Node& node, std::vector<std::int64_t> kernel) {
  Window window;
  window.kernel = std::move(kernel);
  const std::size_t rank = window.rank();
  check_list(window.kernel, rank, 1, "kernel_shape");
  window.strides = read_list(node, "strides", rank, 1);
  check_list(window.strides, rank, 1, "strides");
  window.dilations = read_list(node, "dilations", rank, 1);
  check_list(window.dilations, rank, 1, "dilations");
  for (std::size_t i = 0; i < rank; ++i) {
    if (window.kernel[i] > kMaxWindow / window.dilations[i]) {
      fail(ErrorKind::BadModel, "kernel {} with dilation {} is too large", window.kernel[i],
           window.dilations[i]);
    }
  }
  window.pads = read_list(node, "pads", 2 * rank, 0);
  check_list(window.pads, 2 * rank, 0, "pads");
  window.auto_pad = node.get_string("auto_pad", "NOTSET");
  window.ceil_mode = node.get_int("ceil_mode", 0) != 0;
  return window;
}

Dim window_places(const Window& window, std::size_t index, const Dim& size) {
  const std::int64_t stride = window.strides[index];
  const std::int64_t reach = (window.kernel[index] - 1) * window.dilations[index] + 1;
  if (window.auto_pad == "SAME_UPPER" || window.auto_pad == "SAME_LOWER") {
    return ceil_div(SymInt(size), stride).dim();
  }
  const bool padded = window.auto_pad != "VALID";
  const std::int64_t before = padded ? window.pads[index] : 0;
  const std::int64_t pads = before + (padded ? window.pads[index + window.rank()] : 0);
  const SymInt slack = SymInt(size) + SymInt(pads - reach);
  if (slack.number && *slack.number < 0) {
    fail(ErrorKind::BadModel,
         "the window reaches over {} elements, but the input has {} + {} of padding", reach,
         size.value, pads);
  }
  if (!window.ceil_mode) return (floor_div(slack, stride) + SymInt(1)).dim();
  SymInt places = ceil_div(slack, stride) + SymInt(1);
  // A window that would start in the padding behind the data does not count.
  if (places.number && size.known() && size.value <= kMaxWindow &&
      (*places.number - 1) * stride >= size.value + before) {
    places = *places.number - 1;
  }
  return places.dim();
}

}  // namespace quench::ops
