// SPDX-License-Identifier: Apache-2.0
// What weight-only and dynamic quantisation do with samples: look at layers' inputs, and judge.
#pragma once

#include <optional>

#include "pipeline/feeds.h"
#include "pipeline/weight_items.h"
#include "tune/gptq.h"

namespace quench {

/// The samples of one job, read once: the first ones tune, those behind them judge.
class WeightSamples {
 public:
  /// Keeps `model` to compare with; nothing is opened or loaded where the options name no data.
  WeightSamples(const Model& model, const QuantizeOptions& options, const Context& context);

  bool any() const noexcept { return model_.has_value(); }
  /// What the inputs of the layers look like that `wanted` says, by item; nothing where GPTQ does
  /// not know the layer. Reads samples.
  std::vector<std::optional<tune::InputMoments>> moments(const std::vector<WeightItem>& items,
                                                         const std::vector<bool>& wanted);
  /// How near the outputs of `made` are to the float model's, on samples not read before.
  void judge(const Model& made, QuantizeReport& report);

 private:
  const QuantizeOptions& options_;
  const Context& context_;
  std::optional<Model> model_;
  std::vector<Value> inputs_;
  EvaluateOptions how_;
  std::unique_ptr<FeedReader> reader_;
  std::int64_t total_ = 0;
  std::int64_t used_ = 0;
};

}  // namespace quench
