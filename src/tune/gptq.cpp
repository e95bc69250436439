// SPDX-License-Identifier: Apache-2.0
// The rounding itself. Inputs with much energy are rounded first, on scales that stay as they are.
#include "tune/gptq.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/cpu.h"
#include "base/parallel.h"
#include "quant/weight_group.h"

namespace quench::tune {
namespace {

/// The share of the mean diagonal that is added to it, as in the paper.
constexpr double kDamping = 0.01;
/// Rows that share a pass over the factor.
constexpr std::int64_t kRows = 8;

QUENCH_MULTIVERSION(void, subtract,
                    (float factor, const float* __restrict x, float* __restrict y,
                     std::int64_t count),
                    (factor, x, y, count)) {
  for (std::int64_t i = 0; i < count; ++i) y[i] -= factor * x[i];
}

QUENCH_MULTIVERSION(double, quadratic_row,
                    (const float* __restrict error, const double* __restrict row,
                     std::int64_t count),
                    (error, row, count)) {
  double sum = 0;
  for (std::int64_t j = 0; j < count; ++j) sum += static_cast<double>(error[j]) * row[j];
  return sum;
}

/// sum over rows of error^T H error; only the upper triangle of H is there.
double output_error(const std::vector<float>& errors, const Square& h, int threads) {
  const std::int64_t columns = h.size;
  const std::int64_t rows = static_cast<std::int64_t>(errors.size()) / columns;
  std::vector<double> parts(static_cast<std::size_t>(rows));
  parallel_for(rows, threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const float* error = errors.data() + row * columns;
      double sum = 0;
      for (std::int64_t i = 0; i < columns; ++i) {
        const auto own = static_cast<double>(error[i]);
        if (own == 0) continue;
        const double* h_row = h.row(i);
        sum += own *
               (own * h_row[i] + 2 * quadratic_row(error + i + 1, h_row + i + 1, columns - i - 1));
      }
      parts[static_cast<std::size_t>(row)] = sum;
    }
  });
  return std::accumulate(parts.begin(), parts.end(), 0.0);
}

/// The columns in the order in which they are rounded.
std::vector<std::int64_t> by_energy(const Square& h) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(h.size));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::ranges::stable_sort(
      order, [&](std::int64_t a, std::int64_t b) { return h.row(a)[a] > h.row(b)[b]; });
  return order;
}

/// H in the order of rounding, with dead inputs alive and the diagonal damped.
Square damped(const Square& h, const std::vector<std::int64_t>& order) {
  double mean = 0;
  for (std::int64_t i = 0; i < h.size; ++i) mean += h.row(i)[i] / static_cast<double>(h.size);
  if (!(mean > 0)) mean = 1;
  Square result(h.size);
  for (std::int64_t i = 0; i < h.size; ++i) {
    for (std::int64_t j = i; j < h.size; ++j) {
      const std::int64_t a = order[static_cast<std::size_t>(i)];
      const std::int64_t b = order[static_cast<std::size_t>(j)];
      result.row(i)[j] = h.row(std::min(a, b))[std::max(a, b)];
    }
    result.row(i)[i] = (result.row(i)[i] > 0 ? result.row(i)[i] : mean) + kDamping * mean;
  }
  return result;
}

/// Scales by row and column of the layer's matrix.
class Scales {
 public:
  Scales(const quant::QuantWeight& base, const LayerMatrix& matrix)
      : scale_(base.scale.data<float>()),
        zero_(base.zero_point.defined() ? to_float(base.zero_point) : std::vector<float>()),
        steps_(quant::steps_of(base.spec)),
        matrix_(matrix),
        one_bit_(base.spec.bits == 1),
        block_(base.spec.block),
        whole_(base.spec.axis < 0) {
    blocks_ = block_ > 0 ? (matrix.columns + block_ - 1) / block_ : 1;
  }

  /// The integer next to a weight, and what it stands for.
  std::pair<std::int16_t, float> round(std::int64_t group, std::int64_t row, std::int64_t column,
                                       float value) const {
    const auto index = static_cast<std::size_t>(place(group, row, column));
    const float scale = scale_[index];
    const float zero = zero_.empty() ? 0.0F : zero_[index];
    float step = std::nearbyint(value / scale) + zero;
    if (one_bit_) step = value < 0 ? -1.0F : 1.0F;
    step = std::clamp(step, static_cast<float>(steps_.low), static_cast<float>(steps_.high));
    return {static_cast<std::int16_t>(step), (step - zero) * scale};
  }

 private:
  std::int64_t place(std::int64_t group, std::int64_t row, std::int64_t column) const {
    if (whole_) return 0;
    const std::int64_t channel = group * matrix_.rows + row;
    if (block_ == 0) return channel;
    return matrix_.transposed ? column / block_ * matrix_.rows + row
                              : channel * blocks_ + column / block_;
  }

  std::span<const float> scale_;
  std::vector<float> zero_;
  quant::Steps steps_;
  const LayerMatrix& matrix_;
  bool one_bit_;
  std::int64_t block_;
  std::int64_t blocks_ = 1;
  bool whole_;
};

/// One group of a layer being rounded.
struct Task {
  std::span<const float> weight;
  const LayerMatrix& matrix;
  const Scales& scales;
  std::int64_t group;
  const std::vector<std::int64_t>& order;
  const std::vector<float>& factor;  ///< U, row by row, in the order of rounding
};

/// Rounds a few rows together, so that the factor is read once for all of them.
void round_rows(const Task& task, std::int64_t begin, std::int64_t end,
                std::vector<std::int16_t>& integers) {
  const std::int64_t columns = task.matrix.columns;
  std::vector<float> rows(static_cast<std::size_t>((end - begin) * columns));
  for (std::int64_t row = begin; row < end; ++row) {
    for (std::int64_t i = 0; i < columns; ++i) {
      rows[static_cast<std::size_t>((row - begin) * columns + i)] =
          task.weight[static_cast<std::size_t>(
              task.matrix.at(task.group, row, task.order[static_cast<std::size_t>(i)]))];
    }
  }
  for (std::int64_t i = 0; i < columns; ++i) {
    const float* u = task.factor.data() + i * columns;
    const std::int64_t column = task.order[static_cast<std::size_t>(i)];
    for (std::int64_t row = begin; row < end; ++row) {
      float* values = rows.data() + (row - begin) * columns;
      const auto [integer, real] = task.scales.round(task.group, row, column, values[i]);
      integers[static_cast<std::size_t>(task.matrix.at(task.group, row, column))] = integer;
      const float error = (values[i] - real) / u[i];
      if (error != 0) subtract(error, u + i + 1, values + i + 1, columns - i - 1);
    }
  }
}

/// What is wrong with each weight of a group, row by row.
std::vector<float> errors_of(const Tensor& real, const Tensor& made, const LayerMatrix& matrix,
                             std::int64_t group) {
  const auto a = real.data<float>();
  const auto b = made.data<float>();
  std::vector<float> errors(static_cast<std::size_t>(matrix.rows * matrix.columns));
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    for (std::int64_t column = 0; column < matrix.columns; ++column) {
      const auto at = static_cast<std::size_t>(matrix.at(group, row, column));
      errors[static_cast<std::size_t>(row * matrix.columns + column)] = a[at] - b[at];
    }
  }
  return errors;
}

double layer_error(const Tensor& real, const quant::QuantWeight& weight, const InputMoments& inputs,
                   int threads) {
  const Tensor made = quant::dequantize_weight(weight, threads);
  double sum = 0;
  for (std::int64_t group = 0; group < inputs.layer().matrix.groups; ++group) {
    sum += output_error(errors_of(real, made, inputs.layer().matrix, group),
                        inputs.sums()[static_cast<std::size_t>(group)], threads);
  }
  return sum;
}

}  // namespace

std::optional<quant::QuantWeight> gptq(const Tensor& weight, const quant::QuantWeight& base,
                                       const InputMoments& inputs, int threads) {
  const LayerMatrix& matrix = inputs.layer().matrix;
  if (matrix.groups == 0 || inputs.samples() == 0) return std::nullopt;
  const Tensor real =
      weight.dtype() == DType::Float32 ? weight.held() : convert(weight, DType::Float32);
  const Scales scales(base, matrix);
  std::vector<std::int16_t> integers(static_cast<std::size_t>(real.size()));
  for (std::int64_t group = 0; group < matrix.groups; ++group) {
    const Square& h = inputs.sums()[static_cast<std::size_t>(group)];
    const std::vector<std::int64_t> order = by_energy(h);
    Square factor = damped(h, order);
    if (!inverse_factor(factor, threads)) return std::nullopt;
    const std::vector<float> u(factor.data.begin(), factor.data.end());
    const Task task{real.data<float>(), matrix, scales, group, order, u};
    const std::int64_t tiles = (matrix.rows + kRows - 1) / kRows;
    parallel_for(tiles, threads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t tile = begin; tile < end; ++tile) {
        round_rows(task, tile * kRows, std::min(matrix.rows, (tile + 1) * kRows), integers);
      }
    });
  }
  quant::QuantWeight better = quant::with_integers(real, base, integers, threads);
  const double before = layer_error(real, base, inputs, threads);
  const double after = layer_error(real, better, inputs, threads);
  if (!(after < before)) return std::nullopt;
  return better;
}

}  // namespace quench::tune
