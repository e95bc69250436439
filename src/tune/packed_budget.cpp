// SPDX-License-Identifier: Apache-2.0
// The price of a bit that fills a size. Packed sizes follow the logarithm of the step so closely
// that a few rounds of measuring and correcting meet the size.
#include "tune/packed_budget.h"

#include <algorithm>
#include <cmath>

#include "formats/packed/file.h"

namespace quench::tune {
namespace {

/// No weight gets more than so many times the error that all would have in equal shares: what was
/// measured on a few inputs, or on random ones, may not hold for all.
constexpr double kMostError = 4;
constexpr double kCoarsest = 0.5;
constexpr int kRounds = 5;
/// Sizes that are nearer to what is wanted are good enough.
constexpr double kNear = 0.002;
/// Errors are rounded to so many steps a factor of 2, so that the last digits of what was measured
/// do not show in the file.
constexpr double kStepsAnOctave = 32;

double packed_bytes(const quant::QuantWeight& weight) {
  double sum = 0;
  for (const Tensor* tensor : {&weight.integers, &weight.scale, &weight.zero_point}) {
    if (!tensor->defined()) continue;
    sum += static_cast<double>(packed::planned_size(packed::plan_tensor(*tensor, true)));
  }
  return sum;
}

/// A weight's size at an error that was tried.
struct Tried {
  double error = 0;
  double bytes = 0;
  quant::WeightSpec spec;
};

class Budget {
 public:
  Budget(const Model& model, const std::vector<WeightItem>& items,
         const std::vector<ErrorShare>& shares, const Context& context)
      : model_(model), items_(items), shares_(shares), context_(context) {}

  std::vector<quant::WeightSpec> fill(double init_scale) {
    coarsest_ = std::min(kCoarsest, kMostError * init_scale);
    const double allowed = fixed_bytes(fixed_width(init_scale));
    measure(std::vector<double>(items_.size(), init_scale));
    double wanted = allowed;
    double best = 0;
    std::vector<Tried> kept;
    for (int round = 0; round < kRounds; ++round) {
      measure(errors_for(wanted));
      const double total = bytes();
      const bool fits = total <= allowed;
      if (kept.empty() || (fits && total > best)) {
        kept = tried_;
        best = fits ? total : 0;
      }
      if (fits && total >= (1 - kNear) * allowed) break;
      wanted += (1 - kNear / 2) * allowed - total;
    }
    std::vector<quant::WeightSpec> chosen;
    for (const Tried& each : kept) chosen.push_back(each.spec);
    return chosen;
  }

 private:
  int threads() const { return context_.num_threads(); }
  double elements(std::size_t i) const { return static_cast<double>(shares_[i].elements); }

  double bytes() const {
    double sum = 0;
    for (const Tried& each : tried_) sum += each.bytes;
    return sum;
  }

  /// Between whole widths, so many parts of either.
  double fixed_bytes(double width) const {
    const int below = static_cast<int>(std::floor(width));
    const double part = width - below;
    double sum = 0;
    for (const WeightItem& item : items_) {
      context_.check_cancelled();
      const auto at = [&](int bits) {
        return packed_bytes(
            quant::quantize_weight(weight_of(model_, item), with_bits(item.spec, bits), threads()));
      };
      sum += (1 - part) * at(below) + (part > 0 ? part * at(below + 1) : 0);
    }
    return sum;
  }

  void measure(const std::vector<double>& errors) {
    tried_.resize(items_.size());
    for (std::size_t i = 0; i < items_.size(); ++i) {
      context_.check_cancelled();
      Tried& tried = tried_[i];
      if (tried.error == errors[i]) continue;
      const Tensor& weight = weight_of(model_, items_[i]);
      tried.error = errors[i];
      tried.spec = with_error(weight, items_[i].spec, errors[i], threads());
      tried.bytes = packed_bytes(quant::quantize_weight(weight, tried.spec, threads()));
      context_.report("measuring sizes", static_cast<std::int64_t>(i + 1),
                      static_cast<std::int64_t>(items_.size()));
    }
  }

  std::vector<double> errors_at(double slope) const {
    std::vector<double> errors = share_out(shares_, std::exp(slope));
    for (double& error : errors) {
      const double rounded = std::nearbyint(std::log2(error) * kStepsAnOctave) / kStepsAnOctave;
      error = std::min(coarsest_, std::exp2(rounded));
    }
    return errors;
  }

  /// The errors at which all weights should take so many bytes, going by what was measured.
  std::vector<double> errors_for(double wanted) const {
    double low = -60;
    double high = 20;
    for (int i = 0; i < 60; ++i) {
      const double middle = (low + high) / 2;
      const std::vector<double> errors = errors_at(middle);
      double sum = 0;
      for (std::size_t k = 0; k < errors.size(); ++k) {
        const double bits = std::log2(tried_[k].error / errors[k]);
        sum += std::max(0.0, tried_[k].bytes + elements(k) * bits / 8);
      }
      (sum > wanted ? low : high) = middle;
    }
    return errors_at(high);
  }

  const Model& model_;
  const std::vector<WeightItem>& items_;
  const std::vector<ErrorShare>& shares_;
  const Context& context_;
  double coarsest_ = kCoarsest;
  std::vector<Tried> tried_;
};

}  // namespace

std::vector<quant::WeightSpec> fill_budget(const Model& model, const std::vector<WeightItem>& items,
                                           const std::vector<ErrorShare>& shares, double init_scale,
                                           const Context& context) {
  return Budget(model, items, shares, context).fill(init_scale);
}

}  // namespace quench::tune
