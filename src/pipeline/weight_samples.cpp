// SPDX-License-Identifier: Apache-2.0
// Runs the float model for GPTQ, and both models to compare them.
#include "pipeline/weight_samples.h"

#include <algorithm>
#include <set>

#include "base/format.h"
#include "pipeline/random_inputs.h"
#include "pipeline/scoring.h"

namespace quench {
namespace {

/// More samples change the sums of products little.
constexpr std::int64_t kTuning = 128;
constexpr std::int64_t kJudging = 256;

}  // namespace

WeightSamples::WeightSamples(const Model& model, const QuantizeOptions& options,
                             const Context& context)
    : options_(options), context_(context) {
  if (options.data.path.empty()) return;
  model_ = model;
  inputs_ = required_inputs(model.graph);
  how_.data = options.data;
  how_.batch = options.batch;
  reader_ = std::make_unique<FeedReader>(how_, inputs_, context_);
  total_ = open_data(options.data, inputs_, context)->size();
}

std::vector<std::optional<tune::InputMoments>> WeightSamples::moments(
    const std::vector<WeightItem>& items, const std::vector<bool>& wanted) {
  std::vector<std::optional<tune::InputMoments>> result(items.size());
  std::set<std::string> taps;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!wanted[i]) continue;
    const plan::WeightSite& site = items[i].sites.front();
    tune::GptqLayer layer = tune::gptq_layer(model_->graph, site);
    const quant::WeightSpec& spec = items[i].spec;
    const bool fits =
        spec.axis < 0 || spec.axis == (spec.block > 0 ? site.sum_axis : site.channel_axis);
    if (layer.matrix.groups == 0 || !fits) continue;
    taps.insert(layer.input);
    result[i].emplace(std::move(layer));
  }
  if (taps.empty()) return result;
  const std::vector<std::string> names(taps.begin(), taps.end());
  Session session(*model_, {.taps = names}, context_);
  // A fifth, and 16 at most, is left to judge by.
  const std::int64_t last = std::min(kTuning, total_ - std::min(options_.held_out, total_ / 5));
  while (used_ < last) {
    const auto feed = reader_->next();
    if (!feed) break;
    used_ += feed->samples;
    const TensorMap values = session.run(feed->inputs, names);
    for (auto& each : result) {
      if (each) each->add(model_->graph, values.at(each->layer().input), context_.num_threads());
    }
    context_.report("looking at inputs", used_, last);
  }
  return result;
}

void WeightSamples::judge(const Model& made, QuantizeReport& report) {
  report.calibration_samples = used_;
  if (!any()) return;
  Session expected(*model_, {}, context_);
  Session actual(made, {}, context_);
  std::vector<ScoreCard> cards;
  for (const Value& output : expected.outputs()) {
    if (info(output.type.dtype).is_float) {
      cards.emplace_back(output.name, std::vector<std::string>{"cosine", "sqnr", "agreement"});
    }
  }
  while (report.judged_samples < kJudging) {
    context_.check_cancelled();
    const auto feed = reader_->next();
    if (!feed) break;
    const TensorMap want = expected.run(feed->inputs);
    const TensorMap got = actual.run(feed->inputs);
    for (ScoreCard& card : cards) {
      card.add(real_rows(got.at(card.output()), feed->samples, feed->rows),
               real_rows(want.at(card.output()), feed->samples, feed->rows));
    }
    report.judged_samples += feed->samples;
    context_.report("judging", report.judged_samples, std::min(kJudging, total_ - used_));
  }
  if (report.judged_samples == 0) return;
  for (const ScoreCard& card : cards) report.outputs.push_back(card.scores());
}

}  // namespace quench
