// SPDX-License-Identifier: Apache-2.0
// Scores a model on data, against labels or against a reference model.
#include "quench/evaluate.h"

#include <algorithm>
#include <chrono>

#include "base/format.h"
#include "base/nearest.h"
#include "base/share.h"
#include "evaluate/feeds.h"
#include "evaluate/random_inputs.h"
#include "evaluate/raw_pixels.h"
#include "evaluate/scoring.h"
#include "evaluate/shared_scores.h"
#include "exec/runs_ahead.h"
#include "formats/fingerprint.h"
#include "metrics/metric.h"
#include "quench/ranks.h"

namespace quench {
namespace {

/// A reference model, when there is one, and what is compared with it.
class Reference {
 public:
  Reference(const std::string& path, const Context& context) : session_(load(path), {}, context) {}

  void pair_with(const Session& actual, const EvaluateOptions& options,
                 const MetricChoice& metrics) {
    pairs_ = pair_outputs(actual.outputs(), session_.outputs(), options.output);
    const bool chosen = !options.metrics.empty() || !options.custom_metrics.empty();
    for (const OutputPair& pair : pairs_) {
      cards_.push_back(
          chosen ? ScoreCard(pair.actual, metrics.with_reference, metrics.custom_with_reference)
                 : ScoreCard::fitting(pair.actual));
    }
  }

  /// The card of pair `i` has the number `first` + i.
  void add(const std::vector<Feed>& feeds, const std::vector<TensorMap>& actual, std::size_t first,
           SharedScores& scores) {
    exec::RunsAhead runs(session_, feeds.size(), [&](std::size_t i) { return feeds[i].inputs; });
    for (std::size_t at = 0; at < feeds.size(); ++at) {
      const Feed& feed = feeds[at];
      const TensorMap expected = runs.next();
      for (std::size_t i = 0; i < pairs_.size(); ++i) {
        scores.add(first + i, real_rows(actual[at].at(pairs_[i].actual), feed.samples, feed.rows),
                   real_rows(expected.at(pairs_[i].expected), feed.samples, feed.rows));
      }
    }
  }

  std::vector<ScoreCard>& cards() { return cards_; }
  const Session& session() const { return session_; }

 private:
  Session session_;
  std::vector<OutputPair> pairs_;
  std::vector<ScoreCard> cards_;
};

MetricChoice choose_metrics(const EvaluateOptions& options, const Truths* truths) {
  const CustomMetrics& custom = options.custom_metrics;
  if (!options.metrics.empty() || !custom.empty()) {
    return sort_metrics(options.metrics, custom, truths);
  }
  if (truths != nullptr) {
    return {.with_labels = metrics::metrics_for(truths->kind()),
            .with_reference = {},
            .custom_with_labels = {},
            .custom_with_reference = {}};
  }
  if (!options.reference.empty()) return {};  // those that fit each output
  return sort_metrics({"top1", "top5"});
}

/// What can be said before anything is read.
void check(const EvaluateOptions& options) {
  if (options.data.path.empty()) fail(ErrorKind::Usage, "evaluation needs data: give --data PATH");
  if (!options.reference.empty()) return;
  const MetricChoice metrics = sort_metrics(options.metrics, options.custom_metrics);
  for (const std::string& name : metrics.with_reference) {
    const bool labelled = find_metric(name).truth && !options.data.labels.empty();
    if (labelled) continue;
    fail(ErrorKind::Usage, "the metric '{}' compares with another model: give --reference MODEL{}",
         name, find_metric(name).truth ? ", or --labels FILE" : "");
  }
  if (!metrics.custom_with_reference.empty()) {
    fail(ErrorKind::Usage, "the metric '{}' compares with another model, and no reference is given",
         metrics.custom_with_reference.front().name);
  }
}

/// Whether the labels that there are, if any, are those that the metrics want.
void check_labels(const EvaluateOptions& options, const MetricChoice& metrics,
                  const FeedReader& reader) {
  const auto truths = reader.truths();
  if (options.reference.empty() && !metrics.with_reference.empty()) {
    fail(ErrorKind::BadData, "the metric '{}' needs {}, and {} holds {}",
         metrics.with_reference.front(),
         to_string(find_metric(metrics.with_reference.front()).truth.value_or(TruthKind::Boxes)),
         options.data.labels, truths ? to_string(truths->kind()) : "classes");
  }
  for (const std::string& name : metrics.with_labels) {
    if (truths == nullptr && reader.has_labels()) continue;
    if (truths != nullptr && find_metric(name).truth == truths->kind()) continue;
    fail(ErrorKind::BadData, "the metric '{}' needs {}, and {} has none: give --labels FILE", name,
         truths ? "classes" : "labels", truths ? options.data.labels : options.data.path);
  }
  if (!metrics.custom_with_labels.empty() && !reader.has_labels()) {
    fail(ErrorKind::BadData, "the metric '{}' needs labels, and {} has none: give --labels FILE",
         metrics.custom_with_labels.front().name, options.data.path);
  }
}

std::string choose_output(const Session& session, const std::string& wanted) {
  const std::vector<std::string> names = names_of(session.outputs());
  if (names.empty()) fail(ErrorKind::BadModel, "the model has no outputs");
  if (wanted.empty()) return names.front();
  if (std::find(names.begin(), names.end(), wanted) == names.end()) {
    fail(ErrorKind::BadData, "there is no output '{}'; the model has {}{}", wanted,
         fmt::join(names, ", "), did_you_mean(wanted, names));
  }
  return wanted;
}

Tensor labels_of(const Feed& feed) {
  for (std::size_t i = 0; i < feed.labels.size(); ++i) {
    if (feed.labels[i] < 0) {
      fail(ErrorKind::BadData, "there is no label for sample '{}'", feed.names[i]);
    }
  }
  return Tensor::of<std::int64_t>({feed.samples}, std::span<const std::int64_t>(feed.labels));
}

/// Label scores and reference scores of one output belong on one line.
void merge_into(std::vector<OutputScores>& outputs, OutputScores scores) {
  for (OutputScores& known : outputs) {
    if (known.output != scores.output) continue;
    known.scores.merge(scores.scores);
    return;
  }
  outputs.push_back(std::move(scores));
}

/// As many as are run together.
std::vector<Feed> next_feeds(FeedReader& reader, std::size_t most) {
  std::vector<Feed> feeds;
  while (feeds.size() < most) {
    auto feed = reader.next();
    if (!feed) break;
    feeds.push_back(std::move(*feed));
  }
  return feeds;
}

std::vector<TensorMap> outputs_of(Session& session, const std::vector<Feed>& feeds) {
  std::vector<RunRequest> runs;
  for (const Feed& feed : feeds) runs.push_back({.feeds = feed.entered});
  std::vector<TensorMap> outputs;
  for (const EngineValues& made : session.compute_all(runs)) outputs.push_back(session.leave(made));
  return outputs;
}

/// Ranks score one model, or have parts of one, on one data set.
void agree(const Model& model, const EvaluateOptions& options, const Context& context) {
  if (!context.ranks) return;
  if (sharers(context) != nullptr) context.ranks->agree("the model", fingerprint(model));
  context.ranks->agree("what is asked for",
                       format("{} {} {} {}", fmt::join(options.metrics, ","), options.reference,
                              options.output, options.batch));
}

}  // namespace

EvaluateResult evaluate(const std::string& model_path, const EvaluateOptions& options,
                        const Context& context) {
  check(options);
  const Model model = load(model_path);
  agree(model, options, context);
  Session session(model, {.dequantize = options.dequantize, .rounding = options.rounding}, context);
  const std::string output = choose_output(session, options.output);
  FeedReader reader(options, session.inputs(), context, true, &session);
  if (context.ranks) context.ranks->agree("the data set", reader.identity());
  const MetricChoice metrics = choose_metrics(options, reader.truths().get());
  check_labels(options, metrics, reader);
  std::optional<Reference> reference;
  if (!options.reference.empty()) {
    reference.emplace(options.reference, context);
    reference->pair_with(session, options, metrics);
  }
  // Parts of a model run all together or not at all.
  const auto doubt = shards(context) != nullptr
                         ? std::nullopt
                         : evaluation::doubt_raw_pixels(model, model_path, options.data.path,
                                                        *reader.source(), context);
  if (doubt) context.warn(*doubt);
  ScoreCard labelled(output, metrics.with_labels, metrics.custom_with_labels, reader.truths());
  std::vector<ScoreCard*> cards = {&labelled};
  if (reference) {
    for (ScoreCard& card : reference->cards()) cards.push_back(&card);
  }
  SharedScores scores(std::move(cards), context);
  EvaluateResult result{.batch = reader.batch(), .outputs = {}};
  const auto start = std::chrono::steady_clock::now();
  while (true) {
    const std::size_t other = reference ? reference->session().runs_together() : 1;
    const std::vector<Feed> feeds = next_feeds(reader, std::max(session.runs_together(), other));
    if (feeds.empty()) break;
    const std::vector<TensorMap> outputs = outputs_of(session, feeds);
    for (std::size_t i = 0; i < feeds.size(); ++i) {
      const Feed& feed = feeds[i];
      result.samples += feed.samples;
      if (!metrics.any_with_labels()) continue;
      scores.add(0, real_rows(outputs[i].at(output), feed.samples, feed.rows), labels_of(feed));
    }
    if (reference) reference->add(feeds, outputs, 1, scores);
  }
  result.samples = scores.join(result.samples);
  const auto elapsed = std::chrono::steady_clock::now() - start;
  result.seconds = std::chrono::duration<double>(elapsed).count();
  if (metrics.any_with_labels()) result.outputs.push_back(labelled.scores());
  if (reference) {
    for (const ScoreCard& card : reference->cards()) merge_into(result.outputs, card.scores());
  }
  return result;
}

}  // namespace quench
