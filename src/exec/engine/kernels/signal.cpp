// SPDX-License-Identifier: Apache-2.0
// Signal processing: windows, Fourier transforms, mel weights.
#include <array>
#include <cmath>
#include <numbers>

#include "exec/engine/bridge.h"
#include "exec/engine/kernels/common.h"

namespace quench::exec {
namespace {

constexpr double kPi = std::numbers::pi;

/// A window as a sum of cosines: a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N).
struct Cosines {
  double a0, a1, a2;
};
constexpr Cosines kHann{0.5, 0.5, 0};
constexpr Cosines kHamming{25.0 / 46, 21.0 / 46, 0};
constexpr Cosines kBlackman{0.42, 0.5, 0.08};

std::optional<at::ScalarType> output_type(const OpContext& context) {
  const auto number = context.node.get_int("output_datatype", 1);
  return scalar_type(static_cast<DType>(number));
}

template <const Cosines& kShape>
Kernel make_window(const OpContext& context) {
  const auto type = output_type(context);
  if (!type) return refuse("output_datatype is not a type the engine computes with");
  const bool periodic = context.node.get_int("periodic", 1) != 0;
  return map_input([=](const at::Tensor& size) {
    const std::int64_t count = to_int(size);
    const double length = static_cast<double>(periodic ? count : count - 1);
    const at::Tensor angle = at::arange(count, at::kDouble) * (2 * kPi / length);
    const at::Tensor window =
        kShape.a0 - at::cos(angle) * kShape.a1 + at::cos(angle * 2) * kShape.a2;
    return window.to(*type);
  });
}

/// The Fourier matrix: small transforms need no FFT library.
at::Tensor fourier_matrix(std::int64_t length, std::int64_t rows, bool inverse) {
  const at::Tensor places = at::arange(length, at::kDouble);
  const at::Tensor turns =
      at::remainder(at::outer(at::arange(rows, at::kDouble), places), static_cast<double>(length));
  const double unit = (inverse ? 2 : -2) * kPi / static_cast<double>(length);
  const at::Tensor angle = turns * unit;
  const at::Tensor matrix = at::complex(at::cos(angle), at::sin(angle));
  return inverse ? matrix / static_cast<double>(length) : matrix;
}

/// Transforms the last axis of complex numbers, cut or filled with zeros to `length`.
at::Tensor transform(const at::Tensor& x, std::int64_t length, bool inverse, bool onesided) {
  const std::int64_t grow = length - x.size(-1);
  const at::Tensor sized = at::constant_pad_nd(x, {0, grow}, 0);
  const std::int64_t rows = onesided ? length / 2 + 1 : length;
  return at::matmul(sized, fourier_matrix(length, rows, inverse).t());
}

/// ONNX keeps complex numbers as a last axis of one (real) or two elements.
at::Tensor as_complex(const at::Tensor& x) {
  const at::Tensor wide = x.to(at::kDouble);
  if (x.size(-1) == 2) return at::view_as_complex(wide.contiguous());
  const at::Tensor real = wide.select(-1, 0);
  return at::complex(real, at::zeros_like(real));
}

Kernel make_dft(const OpContext& context) {
  const bool inverse = context.node.get_int("inverse", 0) != 0;
  const bool onesided = context.node.get_int("onesided", 0) != 0;
  if (inverse && onesided) return refuse("an inverse transform of half a spectrum");
  const std::int64_t fixed_axis = context.node.get_int("axis", 1);
  const bool axis_input = context.opset >= 20;
  return [=](Call& call) {
    const at::Tensor& x = call.in(0);
    std::int64_t axis = fixed_axis;
    if (axis_input) axis = call.has(2) ? to_int(call.in(2)) : -2;
    axis = wrap_axis(axis, x.dim());
    const std::int64_t length = call.has(1) ? to_int(call.in(1)) : x.size(axis);
    if (length < 1) fail(ErrorKind::BadData, "a transform of {} elements is not possible", length);
    const at::Tensor moved = as_complex(x).movedim(axis, -1);
    const at::Tensor result = transform(moved, length, inverse, onesided).movedim(-1, axis);
    call.set(0, at::view_as_real(result.contiguous()).to(x.scalar_type()));
  };
}

Kernel make_stft(const OpContext& context) {
  const bool onesided = context.node.get_int("onesided", 1) != 0;
  return [onesided](Call& call) {
    const at::Tensor& x = call.in(0);
    const std::int64_t step = to_int(call.in(1));
    std::int64_t length = call.has(3) ? to_int(call.in(3)) : 0;
    if (length == 0 && call.has(2)) length = call.in(2).numel();
    if (length < 1 || step < 1 || length > x.size(1)) {
      fail(ErrorKind::BadData, "frames of {} elements every {} do not fit {} elements", length,
           step, x.size(1));
    }
    at::Tensor frames = as_complex(x.dim() == 2 ? x.unsqueeze(-1) : x).unfold(1, length, step);
    if (call.has(2)) frames = frames * call.in(2).to(at::kDouble);
    const at::Tensor result = transform(frames, length, false, onesided);
    call.set(0, at::view_as_real(result.contiguous()).to(x.scalar_type()));
  };
}

double to_mel(double hertz) { return 2595 * std::log10(1 + hertz / 700); }
double to_hertz(double mel) { return 700 * (std::pow(10, mel / 2595) - 1); }

Kernel make_mel_weights(const OpContext& context) {
  const auto type = output_type(context);
  if (!type) return refuse("output_datatype is not a type the engine computes with");
  return [type](Call& call) {
    const std::int64_t bands = to_int(call.in(0));
    const std::int64_t length = to_int(call.in(1));
    const double rate = static_cast<double>(to_int(call.in(2)));
    const double low = to_mel(to_double(call.in(3)));
    const double high = to_mel(to_double(call.in(4)));
    if (bands < 1 || length < 1 || bands > 1'000'000 || length > 100'000'000) {
      fail(ErrorKind::BadData, "{} bands of {} elements are not possible", bands, length);
    }
    const double step = (high - low) / static_cast<double>(bands + 2);
    const auto bin = [&](std::int64_t i) {
      const double hertz = to_hertz(low + step * static_cast<double>(i));
      return static_cast<std::int64_t>(std::floor(static_cast<double>(length + 1) * hertz / rate));
    };
    at::Tensor weights = at::zeros({length / 2 + 1, bands}, at::kDouble);
    auto table = weights.accessor<double, 2>();
    const auto put = [&](std::int64_t row, std::int64_t band, double value) {
      if (row >= 0 && row < weights.size(0)) table[row][band] = value;
    };
    for (std::int64_t band = 0; band < bands; ++band) {
      const std::int64_t left = bin(band), centre = bin(band + 1), right = bin(band + 2);
      if (centre == left) put(centre, band, 1);
      for (std::int64_t i = left; centre > left && i <= centre; ++i) {
        put(i, band, static_cast<double>(i - left) / static_cast<double>(centre - left));
      }
      for (std::int64_t i = centre; right > centre && i < right; ++i) {
        put(i, band, static_cast<double>(right - i) / static_cast<double>(right - centre));
      }
    }
    call.set(0, weights.to(*type));
  };
}

}  // namespace

KernelInfo kernel_HannWindow() { return {.since = 17, .make = make_window<kHann>}; }
KernelInfo kernel_HammingWindow() { return {.since = 17, .make = make_window<kHamming>}; }
KernelInfo kernel_BlackmanWindow() { return {.since = 17, .make = make_window<kBlackman>}; }
KernelInfo kernel_DFT() { return {.since = 17, .make = make_dft}; }
KernelInfo kernel_STFT() { return {.since = 17, .make = make_stft}; }
KernelInfo kernel_MelWeightMatrix() { return {.since = 17, .make = make_mel_weights}; }

}  // namespace quench::exec
