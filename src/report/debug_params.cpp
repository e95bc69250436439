// SPDX-License-Identifier: Apache-2.0
// converter_lite's table of scales.
#include <cmath>

#include "base/format.h"
#include "quant/dequantize_linear.h"
#include "report/csv.h"
#include "report/debug_info.h"

namespace quench {
namespace {

std::string number(double value) { return format("{:.6g}", value); }

/// What is left to mend of a channel: float = var * dequantised + mean, in spread and mean.
struct Correction {
  double var = 1;
  double mean = 0;
};

/// Sums over the elements that share a scale.
struct Moments {
  double count = 0;
  double sum = 0;
  double squares = 0;
  void add(double value) {
    ++count;
    sum += value;
    squares += value * value;
  }
  double mean() const { return count > 0 ? sum / count : 0; }
  double deviation() const {
    return count > 0 ? std::sqrt(std::max(0.0, squares / count - mean() * mean())) : 0;
  }
};

std::vector<Correction> corrections(const std::vector<float>& before,
                                    const std::vector<float>& after,
                                    const std::vector<std::size_t>& places, std::size_t count) {
  constexpr double kMost = 10;  // as converter_lite: more is no correction
  std::vector<Moments> real(count);
  std::vector<Moments> quantized(count);
  for (std::size_t i = 0; i < places.size(); ++i) {
    real[places[i]].add(static_cast<double>(before[i]));
    quantized[places[i]].add(static_cast<double>(after[i]));
  }
  std::vector<Correction> result(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double ratio = real[i].deviation() / quantized[i].deviation();
    if (ratio > 0 && ratio < kMost) result[i].var = ratio;
    result[i].mean = real[i].mean() - result[i].var * quantized[i].mean();
  }
  return result;
}

class ParamTable {
 public:
  ParamTable(const Graph& real, const Graph& quantized, const ParamFacts& facts)
      : real_(real), quantized_(quantized), facts_(facts) {}

  /// A row for each scale.
  std::string rows(const TensorPair& pair) const {
    std::string text;
    for (const TensorParams& params : pair.params) text += rows(pair, params);
    return text;
  }

 private:
  std::string rows(const TensorPair& pair, const TensorParams& params) const {
    const std::vector<float> scales = to_float(*params.scale);
    const std::vector<float> zeros =
        params.zero == nullptr ? std::vector<float>() : to_float(*params.zero);
    const std::vector<Correction> mends = corrections_of(pair, params, scales.size());
    const Shape shape = shape_of(pair, params);
    std::string dims;
    for (const std::int64_t dim : shape) dims += format("{} ", dim);
    std::string text;
    for (std::size_t i = 0; i < scales.size(); ++i) {
      const std::size_t zero = zeros.size() == 1 ? 0 : i;
      text += debug_line(
          {pair.node, pair.op_type, pair.tensor, format("{}", num_elements(shape).value_or(0)),
           dims, number(static_cast<double>(scales[i])),
           number(zero < zeros.size() ? static_cast<double>(zeros[zero]) : 0),
           format("{}", bits_of(pair, params)), number(mends[i].var), number(mends[i].mean)});
    }
    return text;
  }

  std::vector<Correction> corrections_of(const TensorPair& pair, const TensorParams& params,
                                         std::size_t count) const {
    const Tensor* before = real_.constant(real_.find(pair.float_name));
    const Tensor* integers = quantized_.constant(params.integers);
    if (before == nullptr || integers == nullptr) return std::vector<Correction>(count);
    const Shape& shape = before->shape();
    const bool turned = shape != integers->shape();
    if (turned && before->size() != integers->size()) return std::vector<Correction>(count);
    const std::vector<float> after =
        pair.weight.defined() ? to_float(pair.weight) : dequantized(quantized_, params);
    // A product holds a Gemm's weight the other way round.
    const std::int64_t axis = turned ? 1 - params.axis : params.axis;
    return corrections(to_float(*before), after, quant::scale_places(shape, *params.scale, axis),
                       count);
  }

  /// Where the file leaves dimensions open: as they were in the first round.
  Shape shape_of(const TensorPair& pair, const TensorParams& params) const {
    if (const Tensor* stored = quantized_.constant(params.integers)) return stored->shape();
    if (const auto known = quantized_[params.integers].type.static_shape()) return *known;
    const auto seen = facts_.shapes.find(pair.quantized_name);
    return seen == facts_.shapes.end() ? Shape() : seen->second;
  }

  int bits_of(const TensorPair& pair, const TensorParams& params) const {
    constexpr int kUsual = 8;
    const Tensor* stored = quantized_.constant(params.integers);
    const DType dtype =
        stored != nullptr ? stored->dtype() : quantized_[params.integers].type.dtype;
    const int room = dtype == DType::Undefined ? kUsual : static_cast<int>(info(dtype).bits);
    const auto known = facts_.bits.find(pair.tensor);
    // A bias has a scale of its own, wider than that of its layer.
    return known != facts_.bits.end() && known->second <= room ? known->second : room;
  }

  const Graph& real_;
  const Graph& quantized_;
  const ParamFacts& facts_;
};

}  // namespace

std::string debug_line(std::vector<std::string> fields) {
  fields.emplace_back();
  return report::csv_line(fields);
}

std::string params_table(const Graph& real, const Graph& quantized,
                         const std::vector<TensorPair>& pairs, const ParamFacts& facts) {
  std::string text = debug_line({"NodeName", "NodeType", "TensorName", "ElementsNum", "Dims",
                                 "Scale", "ZeroPoint", "Bits", "CorrectionVar", "CorrectionMean"});
  const ParamTable table(real, quantized, facts);
  for (const TensorPair& pair : pairs) text += table.rows(pair);
  return text;
}

}  // namespace quench
