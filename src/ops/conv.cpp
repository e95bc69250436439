// SPDX-License-Identifier: Apache-2.0
// Convolutions: plain, transposed, integer, deformable, and Col2Im.
#include <algorithm>

#include "ops/window.h"

namespace quench::ops {
namespace {

/// The spatial dimensions of the weights, which kernel_shape must repeat if it is there.
std::optional<std::vector<std::int64_t>> kernel_of(const InferContext& context,
                                                   std::size_t weights) {
  auto kernel = context.node().get_ints("kernel_shape");
  const Dims* dims = context.shape(weights);
  if (dims == nullptr) return kernel.empty() ? std::nullopt : std::optional(std::move(kernel));
  std::vector<std::int64_t> spatial;
  for (std::size_t i = 2; i < dims->size(); ++i) spatial.push_back((*dims)[i].value);
  if (kernel.empty()) {
    const bool open = std::any_of(spatial.begin(), spatial.end(), [](auto v) { return v < 0; });
    return open ? std::nullopt : std::optional(std::move(spatial));
  }
  for (std::size_t i = 0; i < std::max(kernel.size(), spatial.size()); ++i) {
    if (kernel.size() != spatial.size() || (spatial[i] >= 0 && spatial[i] != kernel[i])) {
      fail(ErrorKind::BadModel, "kernel_shape {} does not fit weights of shape {}",
           to_string(std::span<const std::int64_t>(kernel)), shape_text(*dims));
    }
  }
  return kernel;
}

std::int64_t checked_group(const InferContext& context) {
  const std::int64_t group = context.node().get_int("group", 1);
  if (group < 1) fail(ErrorKind::BadModel, "group is {}, which must be at least 1", group);
  return group;
}

void check_divides(std::int64_t group, const Dim& channels, std::string_view what) {
  if (channels.known() && channels.value % group != 0) {
    fail(ErrorKind::BadModel, "group {} does not divide the {} {} channels", group, channels.value,
         what);
  }
}

/// Input and weights must have one rank and agree on the channels: x[1] / group == w[1].
void check_channels(const Dims& x, const Dims& w, std::int64_t group) {
  if (x.size() != w.size()) {
    fail(ErrorKind::BadModel, "input {} and weights {} have different ranks", shape_text(x),
         shape_text(w));
  }
  check_divides(group, x[1], "input");
  check_divides(group, w[0], "output");
  if (x[1].known() && w[1].known() && x[1].value / group != w[1].value) {
    fail(ErrorKind::BadModel,
         "weights {} take {} channels a group, but input {} in {} groups has {}", shape_text(w),
         w[1].value, shape_text(x), group, x[1].value / group);
  }
}

std::optional<Dims> conv_shape(const InferContext& context, std::size_t x, std::size_t w) {
  expect_min_rank(context, x, 3);
  expect_min_rank(context, w, 3);
  const std::int64_t group = checked_group(context);
  const Dims* input = context.shape(x);
  const Dims* weights = context.shape(w);
  if (input == nullptr) return std::nullopt;
  if (weights != nullptr) check_channels(*input, *weights, group);
  Dims result = unknown_dims(input->size());
  result[0] = (*input)[0];
  if (weights != nullptr) result[1] = (*weights)[0];
  const auto kernel = kernel_of(context, w);
  if (!kernel) return result;
  if (kernel->size() + 2 != input->size()) {
    fail(ErrorKind::BadModel, "kernel_shape has {} entries, but input {} has {} spatial dimensions",
         kernel->size(), shape_text(*input), input->size() - 2);
  }
  const Window window = read_window(context.node(), *kernel);
  for (std::size_t i = 0; i < window.rank(); ++i) {
    result[i + 2] = window_places(window, i, (*input)[i + 2]);
  }
  return result;
}

/// The bias is a vector with one element for each output channel.
void expect_bias(const InferContext& context, std::size_t index, const Dim& channels) {
  const Dims* bias = context.shape(index);
  if (bias == nullptr || (bias->size() == 1 && unify(bias->front(), channels))) return;
  fail(ErrorKind::BadModel,
       "the bias is {}, but must be a vector with one element for each output channel{}",
       shape_text(*bias), channels.known() ? format(" ({})", channels.value) : "");
}

/// One spatial dimension of a transposed convolution.
Dim transposed_size(const Window& window, std::size_t index, const Dim& size, std::int64_t extra) {
  const std::int64_t stride = window.strides[index];
  if (window.auto_pad == "SAME_UPPER" || window.auto_pad == "SAME_LOWER") {
    return (SymInt(size) * SymInt(stride)).dim();
  }
  const std::int64_t reach = (window.kernel[index] - 1) * window.dilations[index] + 1;
  const std::int64_t pads = window.pads[index] + window.pads[index + window.rank()];
  const std::int64_t cut = window.auto_pad == "VALID" ? 0 : pads;
  const SymInt result = (SymInt(size) - SymInt(1)) * SymInt(stride) + SymInt(extra + reach - cut);
  if (result.number && *result.number < 0) {
    fail(ErrorKind::BadModel, "spatial dimension {} of the output would be {}", index,
         *result.number);
  }
  return result.dim();
}

std::vector<std::int64_t> output_list(const Node& node, std::string_view name, std::size_t rank) {
  auto list = node.get_ints(name);
  // Some exporters write the whole shape here; the last entries are the spatial ones.
  if (list.size() == rank + 2) list.erase(list.begin(), list.begin() + 2);
  if (!list.empty() && list.size() != rank) {
    fail(ErrorKind::BadModel, "{} must have {} entries, but has {}", name, rank, list.size());
  }
  for (const std::int64_t value : list) {
    if (value < 0 || value > (std::int64_t{1} << 40)) {
      fail(ErrorKind::BadModel, "{} holds {}", name, value);
    }
  }
  return list;
}

void fill_transposed(const InferContext& context, const Dims& input, Dims& result) {
  const auto kernel = kernel_of(context, 1);
  if (!kernel) return;
  if (kernel->size() + 2 != input.size()) {
    fail(ErrorKind::BadModel, "kernel_shape has {} entries, but input {} has {} spatial dimensions",
         kernel->size(), shape_text(input), input.size() - 2);
  }
  const Window window = read_window(context.node(), *kernel);
  const auto shape = output_list(context.node(), "output_shape", window.rank());
  auto padding = output_list(context.node(), "output_padding", window.rank());
  padding.resize(window.rank(), 0);
  for (std::size_t i = 0; i < window.rank(); ++i) {
    result[i + 2] =
        shape.empty() ? transposed_size(window, i, input[i + 2], padding[i]) : Dim{shape[i], {}};
  }
}

}  // namespace

void infer_conv(InferContext& context) {
  expect_same_dtype(context, 0, 1);
  std::optional<Dims> shape = conv_shape(context, 0, 1);
  if (shape) expect_bias(context, 2, (*shape)[1]);
  context.set(0, context.dtype(0), std::move(shape));
}

void infer_conv_integer(InferContext& context) {
  context.set(0, DType::Int32, conv_shape(context, 0, 1));
}

void infer_qlinear_conv(InferContext& context) {
  if (context.node().get_int("channels_last", 0) != 0) {
    context.set(0, context.dtype(7), std::nullopt);
    return;
  }
  std::optional<Dims> shape = conv_shape(context, 0, 3);
  if (shape) expect_bias(context, 8, (*shape)[1]);
  context.set(0, context.dtype(7), std::move(shape));
}

void infer_conv_transpose(InferContext& context) {
  expect_same_dtype(context, 0, 1);
  expect_min_rank(context, 0, 3);
  expect_min_rank(context, 1, 3);
  const std::int64_t group = checked_group(context);
  const Dims* input = context.shape(0);
  const Dims* weights = context.shape(1);
  context.set(0, context.dtype(0), std::nullopt);
  if (input == nullptr) return;
  Dims result = unknown_dims(input->size());
  result[0] = (*input)[0];
  if (weights != nullptr) {
    check_divides(group, (*weights)[0], "input");
    if (!unify((*input)[1], (*weights)[0])) {
      fail(ErrorKind::BadModel, "weights {} take {} channels, but input {} has {}",
           shape_text(*weights), (*weights)[0].value, shape_text(*input), (*input)[1].value);
    }
    result[1] = (SymInt((*weights)[1]) * SymInt(group)).dim();
  }
  expect_bias(context, 2, result[1]);
  fill_transposed(context, *input, result);
  context.set(0, context.dtype(0), std::move(result));
}

/// The offsets have the output's spatial dimensions, so the convolution's rule is enough.
void infer_deform_conv(InferContext& context) {
  expect_same_dtype(context, 0, 1);
  std::optional<Dims> shape = conv_shape(context, 0, 1);
  if (shape) expect_bias(context, 3, (*shape)[1]);
  context.set(0, context.dtype(0), std::move(shape));
}

void infer_col2im(InferContext& context) {
  const Dims* input = context.shape(0);
  const SymInts* image = context.ints(1);
  const auto block = context.numbers(2);
  context.set(0, context.dtype(0), std::nullopt);
  if (input == nullptr || image == nullptr) return;
  expect_rank(context, 0, 3);
  Dims result{(*input)[0], Dim{}};
  if (block) {
    const Dims block_dims = to_dims(*block);
    const SymInt area = product(block_dims);
    if (area.number) result[1] = floor_div(SymInt((*input)[1]), *area.number).dim();
  }
  for (const SymInt& size : *image) result.push_back(size.dim());
  context.set(0, context.dtype(0), std::move(result));
}

}  // namespace quench::ops
