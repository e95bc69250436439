// SPDX-License-Identifier: Apache-2.0
// The search for bits. Each layer is quantised alone to see what its error does to the outputs;
// from then on one number, the price of a bit, decides for all of them.

#include "tune/mixed_bits.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/format.h"
#include "evaluate/feeds.h"
#include "evaluate/random_inputs.h"
#include "tune/packed_budget.h"
#include "tune/technique.h"

namespace quench::tune {
namespace {

/// The error at which a layer's effect on the outputs is measured.
constexpr double kProbeError = 0.04;

/// Normal numbers moved to where bytes lie.
TensorMap like_bytes(const TensorMap& feeds) {
  TensorMap result = feeds;
  for (auto& [name, tensor] : result) {
    if (tensor.dtype() != DType::Float32) continue;
    for (float& value : tensor.mutable_data<float>()) value = 128.0F + 64.0F * value;
  }
  return result;
}

/// The first batch of the data. Where there are none, random inputs of the size of normalised data
/// and of bytes: which of both a model expects is not known.
std::vector<TensorMap> probe_runs(const Model& model, const QuantizeOptions& options,
                                  const Context& context) {
  EvaluateOptions how;
  how.data = options.data;
  how.batch = options.batch;
  how.random = {.samples = options.batch, .shapes = options.input_shapes};
  const std::vector<Value> inputs = required_inputs(model.graph);  // the reader keeps no copy
  FeedReader reader(how, inputs, context);
  const auto feed = reader.next();
  if (!feed) fail(ErrorKind::BadData, "{} holds no samples", options.data.path);
  if (!options.data.path.empty()) return {feed->inputs};
  return {feed->inputs, like_bytes(feed->inputs)};
}

class Search {
 public:
  Search(const Model& model, const QuantizeOptions& options, const Context& context,
         const std::vector<WeightItem>& items)
      : model_(model), options_(options), context_(context), items_(items) {
    for (const WeightItem& item : items) {
      shares_.push_back({.elements = weight_of(model, item).size(), .sensitivity = 1});
    }
  }

  /// What each layer does to the outputs, on its own.
  void measure() {
    probe_.emplace(model_, evaluation::EvalData(probe_runs(model_, options_, context_), context_),
                   context_);
    for (std::size_t i = 0; i < items_.size(); ++i) {
      context_.check_cancelled();
      const Tensor& real = weight_of(model_, items_[i]);
      const quant::WeightSpec spec = with_error(real, items_[i].spec, kProbeError, threads());
      const quant::QuantWeight made = quant::quantize_weight(real, spec, threads());
      const double caused = std::max(made.relative_error(), 1e-6);
      Model changed = model_;
      put_weight(changed, items_[i], made, threads());
      shares_[i].sensitivity = error_of(changed).relative / (caused * caused);
      context_.report("probing layers", static_cast<std::int64_t>(i + 1),
                      static_cast<std::int64_t>(items_.size()));
    }
  }

  void measure_widths() {
    for (const WeightItem& item : items_) {
      context_.check_cancelled();
      widths_.push_back(tune::measure_widths(weight_of(model_, item), item.spec, threads()));
    }
  }

  /// The least error of the outputs in the size that `init_scale` states.
  std::vector<quant::WeightSpec> by_init_scale(QuantizeReport& report) {
    try {
      measure();
    } catch (const Error& error) {
      const bool random = options_.data.path.empty();
      const bool ours = error.kind() == ErrorKind::Cancelled || error.kind() == ErrorKind::Internal;
      if (ours || (!random && error.kind() != ErrorKind::Unsupported)) throw;
      report.warnings.push_back(
          format("bits were chosen without running the model, by the sizes of its weights: {}",
                 error.what()));
      assume_sensitivities(shares_);
    }
    return fill_budget(model_, items_, shares_, options_.weight.init_scale, context_);
  }

  /// The smallest model whose outputs keep the cosine.
  std::vector<quant::WeightSpec> to_cosine(double target) {
    return bisect(
        [&](const std::vector<quant::WeightSpec>& chosen) { return cosine(chosen) >= target; });
  }

  /// The model with the least error that fits in a share of the float weights.
  std::vector<quant::WeightSpec> to_size(double target) {
    std::int64_t elements = 0;
    for (const ErrorShare& share : shares_) elements += share.elements;
    // A finer scale is better and larger: the search wants the finest that fits.
    const double allowed = target * static_cast<double>(elements) * 4;
    double low = kFinest;
    double high = kCoarsest;
    std::vector<quant::WeightSpec> best = specs(share_out(shares_, std::exp(high)));
    if (bytes(best) > allowed) {
      fail(ErrorKind::Unsupported,
           "the weights cannot be made as small as {:.3f} of their float size; {:.3f} is the least",
           target, bytes(best) / static_cast<double>(elements) / 4);
    }
    for (int i = 0; i < iterations(); ++i) {
      const double middle = (low + high) / 2;
      std::vector<quant::WeightSpec> chosen = specs(share_out(shares_, std::exp(middle)));
      const bool fits = bytes(chosen) <= allowed;
      (fits ? high : low) = middle;
      if (fits) best = std::move(chosen);
    }
    return best;
  }

 private:
  static constexpr double kFinest = -50;
  static constexpr double kCoarsest = 5;

  int threads() const { return context_.num_threads(); }

  evaluation::OutputError error_of(const Model& changed) const {
    const evaluation::OutputError error = probe_->error(changed);
    if (std::isfinite(error.relative)) return error;
    fail(ErrorKind::Unsupported,
         "the model's outputs are not finite on the inputs that bits were to be chosen with; "
         "give it others with --data, or take fixed bits");
  }

  int iterations() const { return std::clamp(options_.weight.max_iterations / 4, 1, 16); }

  std::vector<quant::WeightSpec> specs(const std::vector<double>& errors) const {
    std::vector<quant::WeightSpec> chosen;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      chosen.push_back(with_bits(items_[i].spec, widths_[i].fewest(errors[i])));
    }
    return chosen;
  }

  double cosine(const std::vector<quant::WeightSpec>& chosen) const {
    Model changed = model_;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      const Tensor& real = weight_of(model_, items_[i]);
      put_weight(changed, items_[i], quant::quantize_weight(real, chosen[i], threads()), threads());
    }
    return error_of(changed).cosine;
  }

  double bytes(const std::vector<quant::WeightSpec>& chosen) const {
    double sum = 0;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      sum += static_cast<double>(shares_[i].elements) * chosen[i].bits / 8;
      const int axis = chosen[i].axis;
      const Shape& shape = weight_of(model_, items_[i]).shape();
      const std::int64_t channels = axis < 0 ? 1 : shape[static_cast<std::size_t>(axis)];
      sum += 4 * static_cast<double>(channels);
    }
    return sum;
  }

  template <typename Good>
  std::vector<quant::WeightSpec> bisect(const Good& good) {
    double low = kFinest;
    double high = kCoarsest;
    std::vector<quant::WeightSpec> best = specs(share_out(shares_, std::exp(low)));
    if (!good(best)) {
      fail(ErrorKind::Unsupported,
           "no choice of bits keeps a cosine of {}: the model amplifies every error; take fixed "
           "bits",
           options_.weight.cosine_target);
    }
    for (int i = 0; i < iterations(); ++i) {
      context_.check_cancelled();
      const double middle = (low + high) / 2;
      std::vector<quant::WeightSpec> chosen = specs(share_out(shares_, std::exp(middle)));
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
  std::vector<ErrorShare> shares_;
  std::vector<WidthErrors> widths_;
  std::optional<evaluation::Evaluator> probe_;
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

/// Sets the bits and the step of every item by what its error does to the outputs. Where
/// `init_scale` alone is given and the engine cannot run the model, by the weights' sizes, which
/// the report is warned of.
void choose_mixed_bits(State& state) {
  const WeightQuantOptions& weight = state.options.weight;
  std::vector<WeightItem>& items = state.stored;
  if (weight.bits != 0 || items.empty()) return;
  check(weight);
  const int threads = state.context.num_threads();
  for (const WeightItem& item : items) {
    // NaN and infinity are found before anything is run.
    (void)quantize_item(state.model.graph, {.name = item.name, .sites = item.sites, .spec = {}},
                        threads);
  }
  Search search(state.model, state.options, state.context, items);
  std::vector<quant::WeightSpec> chosen;
  if (weight.size_target > 0 || weight.auto_tune) {
    search.measure();
    search.measure_widths();
    chosen = weight.size_target > 0 ? search.to_size(weight.size_target)
                                    : search.to_cosine(weight.cosine_target);
  } else {
    chosen = search.by_init_scale(state.report);
  }
  for (std::size_t i = 0; i < items.size(); ++i) items[i].spec = chosen[i];
}

}  // namespace

Technique mixed_bits() {
  return {.info = {.name = "mixed_bits",
                   .summary = "as many bits for each weight as its effect on the outputs asks for",
                   .needs = "",
                   .types = "weight"},
          .stage = Stage::Parameters,
          .apply = choose_mixed_bits};
}

}  // namespace quench::tune
