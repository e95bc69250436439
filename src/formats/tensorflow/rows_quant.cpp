// SPDX-License-Identifier: Apache-2.0
// TensorFlow's fake quantisation: the tensor becomes integers with its scale, as in a TFLite file.
#include <array>
#include <cmath>

#include "base/format.h"
#include "formats/tensorflow/rows.h"
#include "formats/tensorflow/step.h"

namespace quench::tensorflow {
namespace {

constexpr std::int64_t kHighest = 255;

/// TensorFlow moves a range so that zero is an integer.
void add_scale(tflite::Quantization& to, float min, float max, bool narrow) {
  const double low = narrow ? 1 : 0;
  const double scale =
      (static_cast<double>(max) - static_cast<double>(min)) / (static_cast<double>(kHighest) - low);
  if (!(min <= 0) || !(max >= 0) || !(scale > 0) || !std::isfinite(scale)) {
    fail(ErrorKind::BadModel, "its range is {} to {}, which does not hold zero", min, max);
  }
  const double zero = std::clamp(std::round(low - static_cast<double>(min) / scale), low,
                                 static_cast<double>(kHighest));
  to.scale.push_back(static_cast<float>(scale));
  to.zero_point.push_back(static_cast<std::int64_t>(zero));
}

/// The integers of a constant, 128 less than TensorFlow's, so that weights around zero stay there.
Tensor integers(const Tensor& from, tflite::Quantization& scales, bool narrow) {
  Tensor result = Tensor::zeros(DType::Int8, from.shape());
  const auto to = result.mutable_data<std::int8_t>();
  const std::vector<float> numbers = to_float(from);
  const std::size_t channels = scales.scale.size();
  for (std::size_t i = 0; i < to.size(); ++i) {
    const std::size_t channel = i % channels;  // the last dimension, or one for all
    const double number =
        std::round(static_cast<double>(numbers[i]) / static_cast<double>(scales.scale[channel])) +
        static_cast<double>(scales.zero_point[channel]);
    to[i] = static_cast<std::int8_t>(std::clamp<double>(number, narrow ? 1 : 0, kHighest) - 128);
  }
  for (std::int64_t& zero : scales.zero_point) zero -= 128;
  return result;
}

void quantize(Step& step, tflite::Quantization scales) {
  const bool narrow = step.flag("narrow_range", false);
  if (const Tensor* data = step.constant(0)) {
    const Tensor made = integers(*data, scales, narrow);
    const int tensor = step.add_constant(step.result_name(), made);
    step.mutable_item(tensor).quantization = std::move(scales);
    return step.set(tensor);
  }
  if (scales.scale.size() > 1) {
    fail(ErrorKind::Unsupported,
         "a computed tensor has a scale for each channel, which is not read");
  }
  const int tensor = step.make("QUANTIZE", {step.in()}, step.shape(), DType::UInt8);
  step.mutable_item(tensor).quantization = std::move(scales);
  step.set(tensor);
}

void expect_bytes(const Step& step) {
  const std::int64_t bits = step.number("num_bits", 8);
  if (bits == 8 && step.dtype() == DType::Float32) return;
  fail(ErrorKind::Unsupported, "it quantises to {} bits; 8 are read", bits);
}

void lower_args(Step& step) {
  expect_bytes(step);
  constexpr double kUsual = 6;
  tflite::Quantization scales;
  add_scale(scales, static_cast<float>(step.real("min", -kUsual)),
            static_cast<float>(step.real("max", kUsual)), step.flag("narrow_range", false));
  quantize(step, std::move(scales));
}

void lower_vars(Step& step) {
  expect_bytes(step);
  const std::vector<float> min = to_float(step.need_constant(1));
  const std::vector<float> max = to_float(step.need_constant(2));
  const bool each = step.op() == "FakeQuantWithMinMaxVarsPerChannel";
  const std::int64_t channels = each && step.rank() > 0 ? step.shape().back() : 1;
  if (min.size() != max.size() || std::ssize(min) != channels) {
    fail(ErrorKind::BadModel, "it has {} least and {} greatest numbers for {} channels", min.size(),
         max.size(), channels);
  }
  tflite::Quantization scales;
  scales.axis = each ? step.rank() - 1 : 0;
  for (std::size_t i = 0; i < min.size(); ++i) {
    add_scale(scales, min[i], max[i], step.flag("narrow_range", false));
  }
  quantize(step, std::move(scales));
}

constexpr auto kRows = std::to_array<OpRow>({
    {"FakeQuantWithMinMaxArgs", lower_args},
    {"FakeQuantWithMinMaxVars", lower_vars},
    {"FakeQuantWithMinMaxVarsPerChannel", lower_vars},
});

}  // namespace

std::span<const OpRow> quant_rows() { return kRows; }

}  // namespace quench::tensorflow
