// SPDX-License-Identifier: Apache-2.0
// What the steps of a job have found so far: techniques read it and change it.
#pragma once

#include <optional>

#include "evaluate/evaluator.h"
#include "evaluate/samples.h"
#include "quench/quantize.h"
#include "tensor/overflow.h"
#include "tune/channel_notes.h"
#include "tune/first_pass.h"
#include "tune/gptq.h"
#include "tune/weight_items.h"

namespace quench::tune {

/// Of one model.
struct State {
  State(QuantizeOptions the_options, const Context& the_context)
      : options(std::move(the_options)), context(the_context), validation(the_context) {}

  QuantizeOptions options;
  QuantConfig config;  ///< of the options, with what techniques chose: `plan` is made from it
  const Context& context;
  Model original;  ///< as it was read, with the wanted input shapes; for QuantType::Full
  Model model;     ///< float, prepared: what the plan speaks of
  QuantPlan plan;
  std::vector<WeightItem> stored;  ///< constants that are stored as integers outside of the plan
  evaluation::Samples samples;
  evaluation::Evaluator validation;  ///< by the validation set, against the prepared model
  /// Of `model` and `plan`, where a technique has needed it before statistics are collected.
  std::optional<FirstPass> first;
  StatisticMap statistics;
  LayerMeans means;  ///< of the first samples; empty where no pass was made
  QuantSolution solution;
  std::optional<Model> tuned;  ///< `model` with the weights and biases that are to be quantised
  std::vector<std::optional<InputMoments>> moments;  ///< by `stored`: round these by GPTQ
  /// Likewise, rounded already: where memory does not hold all of `moments`.
  std::vector<std::optional<quant::QuantWeight>> rounded;
  ChannelNotes channels;  ///< what the written file says was done to them
  QuantizeReport report;
  std::shared_ptr<Overflow> overflow;  ///< for weights that were made; null: all stay in memory

  /// A weight that was made, to be wanted again later.
  Tensor kept(Tensor weight) const {
    return overflow ? overflow->keep(std::move(weight)) : std::move(weight);
  }
  const Model& to_quantize() const { return tuned ? *tuned : model; }
};

}  // namespace quench::tune
