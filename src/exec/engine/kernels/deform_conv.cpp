// SPDX-License-Identifier: Apache-2.0
// Convolutions whose samples are moved by offsets, pixel by pixel: columns, then a product.
#include <cmath>

#include "exec/engine/kernels/conv.h"

namespace quench::exec {
namespace {

/// What one plane of an input is sampled by.
struct Sampling {
  std::int64_t height = 0, width = 0;          ///< of the input
  std::int64_t out_height = 0, out_width = 0;  ///< of the result
  Ints kernel, strides, dilations, pads;
  std::int64_t taps() const { return kernel[0] * kernel[1]; }
  std::int64_t pixels() const { return out_height * out_width; }
};

/// Bilinear; beyond the edge lies zero.
float sample(const float* plane, const Sampling& how, float y, float x) {
  const auto height = static_cast<float>(how.height);
  const auto width = static_cast<float>(how.width);
  if (!(y > -1 && x > -1 && y < height && x < width)) return 0;
  const auto top = static_cast<std::int64_t>(std::floor(y));
  const auto left = static_cast<std::int64_t>(std::floor(x));
  const float down = y - static_cast<float>(top);
  const float right = x - static_cast<float>(left);
  const auto at = [&](std::int64_t row, std::int64_t column) {
    const bool inside = row >= 0 && column >= 0 && row < how.height && column < how.width;
    return inside ? plane[row * how.width + column] : 0.0F;
  };
  return (1 - down) * ((1 - right) * at(top, left) + right * at(top, left + 1)) +
         down * ((1 - right) * at(top + 1, left) + right * at(top + 1, left + 1));
}

/// One row of columns for each tap of the kernel. `offset` holds two planes a tap, `mask` one or
/// is null.
void fill_columns(const float* plane, const float* offset, const float* mask, const Sampling& how,
                  float* columns) {
  const std::int64_t pixels = how.pixels();
  for (std::int64_t tap = 0; tap < how.taps(); ++tap) {
    const std::int64_t row = tap / how.kernel[1] * how.dilations[0] - how.pads[0];
    const std::int64_t column = tap % how.kernel[1] * how.dilations[1] - how.pads[1];
    for (std::int64_t i = 0; i < pixels; ++i) {
      const std::int64_t y = i / how.out_width * how.strides[0] + row;
      const std::int64_t x = i % how.out_width * how.strides[1] + column;
      const float value = sample(plane, how, static_cast<float>(y) + offset[2 * tap * pixels + i],
                                 static_cast<float>(x) + offset[(2 * tap + 1) * pixels + i]);
      columns[tap * pixels + i] = mask == nullptr ? value : value * mask[tap * pixels + i];
    }
  }
}

void expect_sizes(const char* what, const at::Tensor& tensor, const Ints& wanted) {
  if (tensor.sizes().vec() == wanted) return;
  fail(ErrorKind::BadData, "its {} must have shape {}, not {}", what, to_string(wanted),
       to_string(tensor.sizes().vec()));
}

at::Tensor deform(const Call& call, const ConvAttributes& attributes, std::int64_t offset_groups) {
  const at::Tensor x = call.in(0).contiguous();
  const at::Tensor weight = call.in(1).contiguous();
  const at::Tensor offset = call.in(2).contiguous();
  const at::Tensor mask = call.has(4) ? call.in(4).contiguous() : at::Tensor();
  if (x.dim() != 4 || weight.dim() != 4 || x.scalar_type() != at::kFloat) {
    fail(ErrorKind::BadData, "it takes images and weights of rank 4 in float32");
  }
  const std::int64_t channels = x.size(1);
  const std::int64_t groups = attributes.groups;
  if (channels % offset_groups != 0 || channels != weight.size(1) * groups ||
      weight.size(0) % groups != 0) {
    fail(ErrorKind::BadData, "its groups do not divide its {} channels", channels);
  }
  const Ints shape = convolved_shape(attributes.window, x.sizes(), weight.sizes().vec());
  const Sampling how{.height = x.size(2),
                     .width = x.size(3),
                     .out_height = shape[2],
                     .out_width = shape[3],
                     .kernel = {weight.size(2), weight.size(3)},
                     .strides = attributes.window.strides,
                     .dilations = attributes.window.dilations,
                     .pads = attributes.window.pads};
  const std::int64_t taps = how.taps();
  expect_sizes("offset", offset, {x.size(0), 2 * offset_groups * taps, shape[2], shape[3]});
  if (mask.defined()) {
    expect_sizes("mask", mask, {x.size(0), offset_groups * taps, shape[2], shape[3]});
  }
  at::Tensor result = at::empty(shape, x.options());
  at::Tensor columns = at::empty({channels * taps, how.pixels()}, x.options());
  const at::Tensor rows = weight.reshape({groups, weight.size(0) / groups, -1});
  for (std::int64_t n = 0; n < x.size(0); ++n) {
    const auto planes = x[n];
    const auto moves = offset[n];
    at::parallel_for(0, channels, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t c = begin; c < end; ++c) {
        const std::int64_t first = c / (channels / offset_groups) * taps * how.pixels();
        const float* weights =
            mask.defined() ? mask.data_ptr<float>() + n * mask.stride(0) + first : nullptr;
        fill_columns(planes.data_ptr<float>() + c * how.height * how.width,
                     moves.data_ptr<float>() + 2 * first, weights, how,
                     columns.data_ptr<float>() + c * taps * how.pixels());
      }
    });
    result[n] = at::bmm(rows, columns.view({groups, -1, how.pixels()}))
                    .reshape({weight.size(0), shape[2], shape[3]});
  }
  return call.has(3) ? result + call.in(3).reshape({1, -1, 1, 1}) : result;
}

Kernel make_deform_conv(const OpContext& context) {
  std::string refusal;
  const auto attributes = conv_attributes(context, 1, refusal);
  if (!attributes) return Kernel::Refusal{refusal};
  const std::int64_t offset_groups = context.node.get_int("offset_group", 1);
  if (attributes->rank != 2) return refuse("only images (rank 4) are known");
  if (offset_groups < 1) return refuse("offset_group must be positive");
  return [attributes = *attributes, offset_groups](Call& call) {
    call.set(0, deform(call, attributes, offset_groups));
  };
}

}  // namespace

KernelInfo kernel_DeformConv() { return {.since = 19, .make = make_deform_conv}; }

}  // namespace quench::exec
