// SPDX-License-Identifier: Apache-2.0
// Shares, ranges and quantisation parameters as the page shows them.
#include "report/histograms.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "plan/qdq.h"
#include "quant/dequantize_linear.h"
#include "report/advice.h"
#include "report/statistics_table.h"

namespace quench::report {
namespace {

constexpr std::size_t kBars = 60;

/// One number, or the least and the greatest of many.
template <typename T>
std::string span_of(const std::vector<T>& values) {
  if (values.empty()) return "";
  const auto ends = std::ranges::minmax(values);
  const auto low = static_cast<double>(ends.min);
  const auto high = static_cast<double>(ends.max);
  return low == high ? format("{:.6g}", low) : format("{:.4g} to {:.4g}", low, high);
}

std::string scheme_of(bool symmetric, std::size_t scales, bool blocks) {
  return format("{}, {}", symmetric ? "symmetric" : "asymmetric",
                blocks        ? "per block"
                : scales == 1 ? "per tensor"
                              : "per channel");
}

ReportParams params_of(const QuantParams& params) {
  return {.bits = params.spec.bits,
          .scheme = scheme_of(params.spec.symmetric, params.scale.size(), false),
          .scale = span_of(params.scale),
          .zero_point = span_of(params.zero_point)};
}

/// The ends of all ranges together, and zero.
Range whole(const std::vector<Range>& ranges) {
  Range all;
  for (const Range& each : ranges) {
    all = {.min = std::min(all.min, each.min), .max = std::max(all.max, each.max)};
  }
  return all;
}

std::size_t bar_of(const ReportHistogram& hist, double value) {
  const double width = (hist.max - hist.min) / static_cast<double>(kBars);
  const double place = width > 0 ? (value - hist.min) / width : 0;
  return static_cast<std::size_t>(std::clamp(place, 0.0, static_cast<double>(kBars) - 1));
}

/// Adds what the values became.
void add_quantized(const std::vector<float>& after, ReportHistogram& hist) {
  hist.quantized.assign(kBars, 0);
  if (after.empty()) return;
  const double share = 1 / static_cast<double>(after.size());
  for (const float value : after) {
    hist.quantized[bar_of(hist, static_cast<double>(value))] += share;
  }
}

/// Adds a share to the bars between two values: steps and bars of nearly the same width would beat
/// against each other if each step fell into one bar.
void spread(double low, double high, double share, ReportHistogram& hist) {
  const double width = (hist.max - hist.min) / static_cast<double>(kBars);
  low = std::clamp(low, hist.min, hist.max);
  high = std::clamp(high, hist.min, hist.max);
  const std::size_t first = bar_of(hist, low);
  if (!(high > low)) {
    hist.quantized[first] += share;
    return;
  }
  for (std::size_t bar = first; bar <= bar_of(hist, high); ++bar) {
    const double start = hist.min + width * static_cast<double>(bar);
    const double covered = std::min(high, start + width) - std::max(low, start);
    hist.quantized[bar] += share * std::max(0.0, covered) / (high - low);
  }
}

/// Adds what the values of a statistic became: each step of the integers holds what was rounded to
/// it, the last ones what was clipped.
void add_quantized(const Statistic& statistic, const QuantParams& params, ReportHistogram& hist) {
  hist.quantized.assign(kBars, 0);
  if (statistic.count == 0 || statistic.bins.empty()) return;
  std::vector<float> middles(statistic.bins.size());
  for (std::size_t i = 0; i < middles.size(); ++i) {
    const auto bin = static_cast<double>(statistic.first_bin + static_cast<std::int64_t>(i));
    middles[i] = static_cast<float>((bin + 0.5) * statistic.bin_width);
  }
  const Tensor before = Tensor::of<float>({static_cast<std::int64_t>(middles.size())},
                                          std::span<const float>(middles));
  const std::vector<float> after = to_float(fake_quantize(before, params));
  const double half = static_cast<double>(params.scale[0]) / 2;
  for (std::size_t i = 0; i < after.size(); ++i) {
    const double share =
        static_cast<double>(statistic.bins[i]) / static_cast<double>(statistic.count);
    const auto value = static_cast<double>(after[i]);
    spread(value - half, value + half, share, hist);
  }
}

ReportHistogram histogram(const std::string& name, const Statistic& statistic) {
  return {.name = name,
          .min = statistic.min,
          .max = statistic.max,
          .share = shares(statistic, kBars),
          .quantized = {},
          .range = {},
          .params = {}};
}

ReportHistogram histogram(const std::string& name, const Tensor& weight) {
  Statistic statistic;
  statistic.add_sample(to_float(weight));
  return histogram(name, statistic);
}

/// Percent of elements that lie outside of what the integers of their scale can hold, by more than
/// rounding.
double clipped_percent(const std::vector<float>& values, const std::vector<std::size_t>& places,
                       const std::vector<Range>& ranges, const std::vector<float>& scales) {
  std::size_t clipped = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t at = places[i];
    const double half = 0.501 * static_cast<double>(scales[at]);
    const auto value = static_cast<double>(values[i]);
    if (value < ranges[at].min - half || value > ranges[at].max + half) ++clipped;
  }
  return values.empty() ? 0
                        : 100 * static_cast<double>(clipped) / static_cast<double>(values.size());
}

/// What integers from `least` to `greatest` stand for, by scale; one zero point may be for all.
template <typename T>
std::vector<Range> ranges_of(const std::vector<float>& scales, const std::vector<T>& zeros,
                             std::int64_t least, std::int64_t greatest) {
  std::vector<Range> ranges(scales.size());
  for (std::size_t i = 0; i < scales.size(); ++i) {
    const auto scale = static_cast<double>(scales[i]);
    const auto zero = static_cast<double>(zeros[zeros.size() == 1 ? 0 : i]);
    ranges[i] = {.min = (static_cast<double>(least) - zero) * scale,
                 .max = (static_cast<double>(greatest) - zero) * scale};
  }
  return ranges;
}

std::vector<Range> planned_ranges(const QuantParams& params) {
  return ranges_of(params.scale, params.zero_point, params.spec.q_min(), params.spec.q_max());
}

}  // namespace

ReportHistogram activation_histogram(const std::string& name, const Statistic& statistic,
                                     const QuantParams* params) {
  ReportHistogram hist = histogram(name, statistic);
  if (params == nullptr || params->scale.empty()) return hist;
  hist.range = whole(planned_ranges(*params));
  hist.params = params_of(*params);
  hist.params->clipped = 100 * clipped_share(statistic, *params);
  if (params->scale.size() == 1) add_quantized(statistic, *params, hist);
  return hist;
}

ReportHistogram weight_histogram(const std::string& name, const Tensor& weight,
                                 const QuantParams* params) {
  ReportHistogram hist = histogram(name, weight);
  if (params == nullptr || params->scale.empty()) return hist;
  const std::vector<Range> ranges = planned_ranges(*params);
  hist.range = whole(ranges);
  hist.params = params_of(*params);
  add_quantized(to_float(fake_quantize(weight, *params)), hist);
  const Tensor scale = Tensor::of<float>(
      params->spec.axis < 0 ? Shape{} : Shape{static_cast<std::int64_t>(params->scale.size())},
      std::span<const float>(params->scale));
  hist.params->clipped = clipped_percent(
      to_float(weight), quant::scale_places(weight.shape(), scale, params->spec.axis), ranges,
      params->scale);
  return hist;
}

ReportHistogram stored_histogram(const std::string& name, const Tensor& weight, int bits,
                                 const Graph& written, const Node& node) {
  ReportHistogram hist = histogram(name, weight);
  const Uses uses(written);
  for (const ValueId input : node.inputs) {
    const NodeId maker = input == kNoValue ? -1 : uses.producer[static_cast<std::size_t>(input)];
    if (maker < 0) continue;
    const Node& dequantize = written.nodes[static_cast<std::size_t>(maker)];
    const Tensor* integers = written.constant(dequantize.input(0));
    const Tensor* scale = written.constant(dequantize.input(1));
    const Tensor* zero = written.constant(dequantize.input(2));
    if (!plan::is_dq(&dequantize) || integers == nullptr || scale == nullptr) continue;
    if (integers->shape() != weight.shape()) continue;
    const std::int64_t axis = dequantize.get_int("axis", 1);
    const std::vector<float> scales = to_float(*scale);
    const std::vector<float> zeros = zero == nullptr ? std::vector<float>{0} : to_float(*zero);
    const std::int64_t half = std::int64_t{1} << (bits - 1);
    const std::vector<Range> ranges = ranges_of(scales, zeros, -half, half - 1);
    const bool blocks = scale->shape().size() == weight.shape().size() && scales.size() > 1;
    add_quantized(quant::dequantize_linear(*integers, *scale, zero, axis), hist);
    hist.range = whole(ranges);
    hist.params = {
        .bits = bits,
        .scheme = scheme_of(zero == nullptr, scales.size(), blocks),
        .scale = span_of(scales),
        .zero_point = span_of(zeros),
        .clipped = clipped_percent(
            to_float(weight), quant::scale_places(weight.shape(), *scale, axis), ranges, scales)};
    break;
  }
  return hist;
}

}  // namespace quench::report
