// SPDX-License-Identifier: Apache-2.0
// The search for bits. Each layer is quantised alone to see what its error does to the outputs;
// from then on one number, the price of a bit, decides for all of them.
#include "pipeline/mixed_bits.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "pipeline/feeds.h"
#include "tune/mixed_bits.h"

namespace quench {
namespace {

/// The width at which a layer's effect on the outputs is measured.
constexpr int kProbeBits = 4;

class Search {
 public:
  Search(const Model& model, const QuantizeOptions& options, const Context& context,
         const std::vector<WeightItem>& items)
      : model_(model), options_(options), context_(context), items_(items) {
    for (const WeightItem& item : items) {
      shares_.push_back({.elements = weight(item).size(), .sensitivity = 1});
    }
  }

  /// Inputs, the float outputs on them, and what each layer does to those.
  void measure() {
    EvaluateOptions how;
    how.data = options_.data;
    how.batch = options_.batch;
    how.random = {.samples = options_.batch, .shapes = options_.input_shapes};
    Session session(model_, {}, context_);
    FeedReader reader(how, session.inputs(), context_);
    const auto feed = reader.next();
    if (!feed) fail(ErrorKind::BadData, "{} holds no samples", options_.data.path);
    feeds_ = feed->inputs;
    expected_ = session.run(feeds_);
    for (std::size_t i = 0; i < items_.size(); ++i) {
      context_.check_cancelled();
      widths_.push_back(tune::measure_widths(weight(items_[i]), items_[i].spec, threads()));
      const quant::QuantWeight made = quant::quantize_weight(
          weight(items_[i]), tune::with_bits(items_[i].spec, kProbeBits), threads());
      const double caused = std::max(made.relative_error(), 1e-6);
      Model probe = model_;
      put(probe, items_[i], made);
      shares_[i].sensitivity = difference(probe).error / (caused * caused);
      context_.report("probing layers", static_cast<std::int64_t>(i + 1),
                      static_cast<std::int64_t>(items_.size()));
    }
  }

  std::vector<quant::WeightSpec> by_init_scale() const {
    const double limit = options_.weight.init_scale;
    const std::vector<double> errors = tune::share_by_size(shares_, limit);
    std::vector<quant::WeightSpec> chosen;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      context_.check_cancelled();
      chosen.push_back(
          tune::coarsest_step(weight(items_[i]), items_[i].spec, errors[i], limit, threads()));
    }
    return chosen;
  }

  /// The smallest model whose outputs keep the cosine.
  std::vector<quant::WeightSpec> to_cosine(double target) {
    return bisect(
        [&](const std::vector<quant::WeightSpec>& chosen) { return cosine(chosen) >= target; });
  }

  /// The model with the least error that fits in a share of the float weights.
  std::vector<quant::WeightSpec> to_size(double target) {
    std::int64_t elements = 0;
    for (const tune::ErrorShare& share : shares_) elements += share.elements;
    // A finer grid is better and larger: the search wants the finest that fits.
    const double allowed = target * static_cast<double>(elements) * 4;
    double low = kFinest;
    double high = kCoarsest;
    std::vector<quant::WeightSpec> best = specs(tune::share_out(shares_, std::exp(high)));
    if (bytes(best) > allowed) {
      fail(ErrorKind::Unsupported,
           "the weights cannot be made as small as {:.3f} of their float size; {:.3f} is the least",
           target, bytes(best) / static_cast<double>(elements) / 4);
    }
    for (int i = 0; i < iterations(); ++i) {
      const double middle = (low + high) / 2;
      std::vector<quant::WeightSpec> chosen = specs(tune::share_out(shares_, std::exp(middle)));
      const bool fits = bytes(chosen) <= allowed;
      (fits ? high : low) = middle;
      if (fits) best = std::move(chosen);
    }
    return best;
  }

 private:
  static constexpr double kFinest = -50;
  static constexpr double kCoarsest = 5;

  struct Difference {
    double error = 0;   ///< squared, relative
    double cosine = 1;  ///< the worst of the outputs
  };

  const Tensor& weight(const WeightItem& item) const {
    return *model_.graph.constant(item.sites.front().value);
  }
  int threads() const { return context_.num_threads(); }
  int iterations() const { return std::clamp(options_.weight.max_iterations / 4, 1, 16); }

  void put(Model& model, const WeightItem& item, const quant::QuantWeight& made) const {
    Tensor real = quant::dequantize_weight(made, threads());
    const ValueId value = item.sites.front().value;
    const DType dtype = model.graph[value].constant->dtype();
    model.graph[value].constant = dtype == DType::Float32 ? std::move(real) : convert(real, dtype);
  }

  Difference difference(const Model& changed) const {
    const TensorMap actual = Session(changed, {}, context_).run(feeds_);
    Difference result;
    for (const auto& [name, expected] : expected_) {
      if (!info(expected.dtype()).is_float) continue;
      const std::vector<float> a = to_float(actual.at(name));
      const std::vector<float> b = to_float(expected);
      double error = 0;
      double aa = 0;
      double bb = 0;
      double ab = 0;
      for (std::size_t i = 0; i < b.size(); ++i) {
        const auto x = static_cast<double>(a[i]);
        const auto y = static_cast<double>(b[i]);
        error += (x - y) * (x - y);
        aa += x * x;
        bb += y * y;
        ab += x * y;
      }
      if (bb > 0) result.error += error / bb;
      const double cosine = aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : aa == bb ? 1 : 0;
      result.cosine = std::min(result.cosine, cosine);
    }
    return result;
  }

  std::vector<quant::WeightSpec> specs(const std::vector<double>& errors) const {
    std::vector<quant::WeightSpec> chosen;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      chosen.push_back(tune::with_bits(items_[i].spec, widths_[i].fewest(errors[i])));
    }
    return chosen;
  }

  double cosine(const std::vector<quant::WeightSpec>& chosen) const {
    Model changed = model_;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      put(changed, items_[i], quant::quantize_weight(weight(items_[i]), chosen[i], threads()));
    }
    return difference(changed).cosine;
  }

  double bytes(const std::vector<quant::WeightSpec>& chosen) const {
    double sum = 0;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      sum += static_cast<double>(shares_[i].elements) * chosen[i].bits / 8;
      const int axis = chosen[i].axis;
      const Shape& shape = weight(items_[i]).shape();
      const std::int64_t channels = axis < 0 ? 1 : shape[static_cast<std::size_t>(axis)];
      sum += 4 * static_cast<double>(channels);
    }
    return sum;
  }

  template <typename Good>
  std::vector<quant::WeightSpec> bisect(const Good& good) {
    double low = kFinest;
    double high = kCoarsest;
    std::vector<quant::WeightSpec> best = specs(tune::share_out(shares_, std::exp(low)));
    if (!good(best)) {
      fail(ErrorKind::Unsupported,
           "no choice of bits keeps a cosine of {}: the model amplifies every error; take fixed "
           "bits",
           options_.weight.cosine_target);
    }
    for (int i = 0; i < iterations(); ++i) {
      context_.check_cancelled();
      const double middle = (low + high) / 2;
      std::vector<quant::WeightSpec> chosen = specs(tune::share_out(shares_, std::exp(middle)));
      const bool kept = good(chosen);
      (kept ? low : high) = middle;
      if (kept) best = std::move(chosen);
      context_.report("searching bits", i + 1, iterations());
    }
    return best;
  }

  const Model& model_;
  const QuantizeOptions& options_;
  const Context& context_;
  const std::vector<WeightItem>& items_;
  std::vector<tune::ErrorShare> shares_;
  std::vector<tune::WidthErrors> widths_;
  TensorMap feeds_;
  TensorMap expected_;
};

void check(const WeightQuantOptions& weight) {
  if (!(weight.init_scale > 0 && weight.init_scale < 1)) {
    fail(ErrorKind::Usage, "init_scale must lie between 0 and 1, not be {}", weight.init_scale);
  }
  if (!(weight.cosine_target > 0 && weight.cosine_target < 1)) {
    fail(ErrorKind::Usage, "the cosine to keep must lie between 0 and 1, not be {}",
         weight.cosine_target);
  }
  if (!(weight.size_target >= 0 && weight.size_target < 1)) {
    fail(ErrorKind::Usage, "the size to fit in must lie between 0 and 1, not be {}",
         weight.size_target);
  }
}

}  // namespace

void choose_mixed_bits(const Model& model, const QuantizeOptions& options, const Context& context,
                       std::vector<WeightItem>& items) {
  const WeightQuantOptions& weight = options.weight;
  check(weight);
  for (const WeightItem& item : items) {
    // NaN and infinity are found before anything is run.
    (void)quantize_item(model.graph, {.name = item.name, .sites = item.sites, .spec = {}},
                        context.num_threads());
  }
  Search search(model, options, context, items);
  std::vector<quant::WeightSpec> chosen;
  if (weight.size_target > 0 || weight.auto_tune) {
    search.measure();
    chosen = weight.size_target > 0 ? search.to_size(weight.size_target)
                                    : search.to_cosine(weight.cosine_target);
  } else {
    chosen = search.by_init_scale();
  }
  for (std::size_t i = 0; i < items.size(); ++i) items[i].spec = chosen[i];
}

}  // namespace quench
