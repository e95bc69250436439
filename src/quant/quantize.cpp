// SPDX-License-Identifier: Apache-2.0
// Whole tensors onto a scale and back.
#include <algorithm>

#include "base/format.h"
#include "quant/cover.h"

namespace quench {
namespace {

/// The tensor as rows that share a scale: outer x channels runs of `inner` elements.
struct Layout {
  std::int64_t runs = 1;
  std::int64_t channels = 1;
  std::int64_t inner = 0;
};

Layout layout_of(const Tensor& tensor, const QuantParams& params) {
  const int axis = params.spec.axis;
  if (params.scale.size() != params.zero_point.size() || params.scale.empty()) {
    fail(ErrorKind::Internal, "there are {} scales and {} zero points", params.scale.size(),
         params.zero_point.size());
  }
  Layout layout{1, 1, tensor.size()};
  if (axis < 0) return layout;
  if (axis >= tensor.rank()) {
    fail(ErrorKind::Usage, "cannot quantise along axis {} of a tensor of shape {}", axis,
         to_string(tensor.shape()));
  }
  layout.inner = 1;
  for (std::int64_t i = 0; i < tensor.rank(); ++i) {
    const std::int64_t dim = tensor.shape()[static_cast<std::size_t>(i)];
    if (i <= axis) layout.runs *= dim;
    if (i > axis) layout.inner *= dim;
    if (i == axis) layout.channels = dim;
  }
  if (layout.channels != static_cast<std::int64_t>(params.scale.size())) {
    fail(ErrorKind::Usage, "axis {} of a tensor of shape {} needs {} scales, there are {}", axis,
         to_string(tensor.shape()), layout.channels, params.scale.size());
  }
  return layout;
}

quant::LoopParams loop_of(const QuantParams& params, std::int64_t channel) {
  const auto index = static_cast<std::size_t>(channel);
  return quant::loop_params({params.scale[index], params.zero_point[index]},
                            {static_cast<std::int32_t>(params.spec.q_min()),
                             static_cast<std::int32_t>(params.spec.q_max())});
}

/// A scale for each element of the channels' runs, one run after the other.
class RowOfParams {
 public:
  RowOfParams(const Layout& layout, const QuantParams& params) {
    for (std::int64_t channel = 0; channel < layout.channels; ++channel) {
      const quant::LoopParams loop = loop_of(params, channel);
      for (std::int64_t i = 0; i < layout.inner; ++i) {
        scale_.push_back(loop.scale);
        low_.push_back(loop.low);
        high_.push_back(loop.high);
        zero_point_.push_back(loop.zero_point);
      }
    }
  }
  quant::RowParams params() const {
    return {scale_.data(), low_.data(), high_.data(), zero_point_.data()};
  }

 private:
  std::vector<float> scale_;
  std::vector<float> low_;
  std::vector<float> high_;
  std::vector<float> zero_point_;
};

/// Calls body(first element, count, parameters) over the whole tensor.
template <typename Body>
void for_each_run(const Layout& layout, const QuantParams& params, const Body& body) {
  constexpr std::int64_t kShort = 32;  // a call costs more than such a run
  if (layout.inner >= kShort || layout.channels == 1) {
    for (std::int64_t run = 0; run < layout.runs; ++run) {
      body(run * layout.inner, layout.inner, loop_of(params, run % layout.channels));
    }
    return;
  }
  const RowOfParams row(layout, params);
  const std::int64_t size = layout.channels * layout.inner;
  for (std::int64_t at = 0; at < layout.runs * layout.inner; at += size) {
    body(at, size, row.params());
  }
}

Tensor as_float(const Tensor& tensor) {
  return tensor.dtype() == DType::Float32 ? tensor.held() : convert(tensor, DType::Float32);
}

template <typename Integer>
Tensor quantize_as(const Tensor& real, const QuantParams& params) {
  const Layout layout = layout_of(real, params);
  Tensor result = Tensor::zeros(DTypeOf<Integer>::value, real.shape());
  const float* src = real.data<float>().data();
  Integer* dst = result.mutable_data<Integer>().data();
  for_each_run(layout, params, [&](std::int64_t at, std::int64_t count, const auto& loop) {
    quant::quantize(src + at, count, loop, dst + at);
  });
  return result;
}

template <typename Integer>
Tensor dequantize_as(const Tensor& given, const QuantParams& params) {
  const Tensor integers = given.held();
  const Layout layout = layout_of(integers, params);
  Tensor result = Tensor::zeros(DType::Float32, integers.shape());
  const Integer* src = integers.data<Integer>().data();
  float* dst = result.mutable_data<float>().data();
  for_each_run(layout, params, [&](std::int64_t at, std::int64_t count, const auto& loop) {
    quant::dequantize(src + at, count, loop, dst + at);
  });
  return result;
}

}  // namespace

Tensor quantize_tensor(const Tensor& real, const QuantParams& params) {
  const Tensor floats = as_float(real);
  switch (params.spec.dtype()) {
    case DType::Int8:
      return quantize_as<std::int8_t>(floats, params);
    case DType::UInt8:
      return quantize_as<std::uint8_t>(floats, params);
    case DType::Int16:
      return quantize_as<std::int16_t>(floats, params);
    default:
      return quantize_as<std::uint16_t>(floats, params);
  }
}

Tensor dequantize_tensor(const Tensor& integers, const QuantParams& params) {
  switch (integers.dtype()) {
    case DType::Int8:
      return dequantize_as<std::int8_t>(integers, params);
    case DType::UInt8:
      return dequantize_as<std::uint8_t>(integers, params);
    case DType::Int16:
      return dequantize_as<std::int16_t>(integers, params);
    case DType::UInt16:
      return dequantize_as<std::uint16_t>(integers, params);
    default:
      fail(ErrorKind::Usage, "cannot dequantise {}; expected int8, uint8, int16 or uint16",
           name_of(integers.dtype()));
  }
}

Tensor fake_quantize(const Tensor& real, const QuantParams& params) {
  const Tensor floats = as_float(real);
  const Layout layout = layout_of(floats, params);
  Tensor result = Tensor::zeros(DType::Float32, floats.shape());
  const float* src = floats.data<float>().data();
  float* dst = result.mutable_data<float>().data();
  for_each_run(layout, params, [&](std::int64_t at, std::int64_t count, const auto& loop) {
    quant::fake_quantize(src + at, count, loop, dst + at);
  });
  return real.dtype() == DType::Float32 ? result : convert(result, real.dtype());
}

}  // namespace quench
