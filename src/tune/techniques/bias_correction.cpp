// SPDX-License-Identifier: Apache-2.0
// Bias correction, kept where the validation set gets nearer to float with it.
#include "tune/bias_correction.h"

#include <limits>

#include "tune/technique.h"

namespace quench::tune {
namespace {

/// Below this SQNR, in dB, a layer is worth the full correction.
constexpr double kPoorLayer = 30;
constexpr std::int64_t kRun = 4;  ///< samples
constexpr std::size_t kFewRuns = 2;

/// A model with other biases, and how near to float it is when it is quantised.
struct Candidate {
  Model model;
  std::size_t corrected_layers = 0;
  double sqnr = -std::numeric_limits<double>::infinity();
};

class BiasTuner {
 public:
  explicit BiasTuner(const State& state) : state_(state), options_(state.options) {}

  Candidate run() const {
    Candidate plain = evaluated(state_.to_quantize(), 0);
    if (!options_.bias_correction || state_.samples.calibration().count == 0) return plain;
    const LayerMeans& known = state_.means;
    const auto rows =
        static_cast<std::int64_t>(known.empty() ? 0 : known.begin()->second.rows.size());
    const std::int64_t samples =
        rows > 0 ? rows : state_.samples.first(options_.correction_samples).count;
    const std::vector<TensorMap> runs = state_.samples.read({.first = 0, .count = samples}, kRun);
    // Statistics from a file come without means.
    const LayerMeans measured = known.empty()
                                    ? measure_means(state_.model, state_.plan, runs, state_.context)
                                    : LayerMeans();
    const LayerMeans& means = known.empty() ? measured : known;
    // Where a layer is poor the full correction, which begins with the fast one, is preferred: it
    // mends the means that layers before it have moved. It must only be better than none.
    if (wants_full(plain)) {
      Candidate full = corrected_fully({runs, means});
      if (better(full, plain)) return full;
    }
    if (options_.correction == BiasCorrection::Full) return plain;
    Candidate fast = corrected_fast(means);
    return better(fast, plain) ? std::move(fast) : std::move(plain);
  }

 private:
  Candidate corrected_fully(const CorrectionData& data) const {
    Model biased = state_.to_quantize();
    const std::size_t layers =
        correct_biases(biased, state_.plan, state_.solution, data, state_.context);
    return evaluated(std::move(biased), layers);
  }

  Candidate corrected_fast(const LayerMeans& means) const {
    Model biased = state_.to_quantize();
    const std::size_t layers = correct_biases_fast(biased, state_.plan, state_.solution, means);
    return evaluated(std::move(biased), layers);
  }

  Candidate evaluated(Model model, std::size_t layers) const {
    Candidate candidate{.model = std::move(model), .corrected_layers = layers};
    if (able()) candidate.sqnr = state_.validation.sqnr(quantized(candidate.model));
    return candidate;
  }

  Model quantized(const Model& model) const {
    return insert_qdq(model, state_.plan, state_.solution);
  }

  bool able() const { return state_.validation.able(); }

  /// With nothing to validate with, a correction is trusted.
  bool better(const Candidate& corrected, const Candidate& plain) const {
    return !able() || corrected.sqnr > plain.sqnr;
  }

  bool wants_full(const Candidate& plain) const {
    if (options_.correction != BiasCorrection::Auto || !able()) {
      return options_.correction != BiasCorrection::Fast;
    }
    // Where outputs are poor, so is a layer: it need not be looked for.
    return plain.sqnr < kPoorLayer ||
           !poor_layers(state_.model, quantized(plain.model), state_.plan,
                        state_.validation.inputs(kFewRuns), kPoorLayer, state_.context)
                .empty();
  }

  const State& state_;
  const QuantizeOptions& options_;
};

void tune_biases(State& state) {
  if (!state.options.bias_correction || !state.samples.any() || state.plan.weights.empty()) return;
  Candidate best = BiasTuner(state).run();
  state.report.corrected_layers = best.corrected_layers;
  if (best.corrected_layers > 0) state.tuned = std::move(best.model);
}

}  // namespace

Technique bias_correction() {
  return {
      .info = {.name = "bias_correction",
               .summary = "move biases by the mean error that quantisation makes in their layers",
               .needs = "samples",
               .types = "full"},
      .stage = Stage::Weights,
      .apply = tune_biases};
}

}  // namespace quench::tune
