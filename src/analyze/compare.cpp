// SPDX-License-Identifier: Apache-2.0
// Holds two models against each other, output by output and layer by layer.
#include <algorithm>
#include <unordered_set>

#include "base/format.h"
#include "evaluate/feeds.h"
#include "evaluate/random_inputs.h"
#include "evaluate/scoring.h"
#include "tune/channel_notes.h"

namespace quench {
namespace {

/// The names of what nodes compute, without the graph's outputs, in run order.
std::vector<std::string> layer_names(const Graph& graph) {
  const Uses uses(graph);
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) {
    for (const ValueId id : node.outputs) {
      if (id == kNoValue || uses.is_output[static_cast<std::size_t>(id)]) continue;
      const ValueType& type = graph[id].type;
      const bool tensor = type.kind != ValueType::Kind::Other;
      // Shapes and indices are no layers; a type that is not known yet may be one.
      const bool number = type.dtype == DType::Undefined || info(type.dtype).is_float;
      if (tensor && number) names.push_back(graph[id].name);
    }
  }
  return names;
}

std::vector<std::string> common_layers(const Graph& a, const Graph& b) {
  const std::vector<std::string> of_b = layer_names(b);
  const std::unordered_set<std::string> in_b(of_b.begin(), of_b.end());
  std::vector<std::string> common;
  for (const std::string& name : layer_names(a)) {
    if (in_b.contains(name)) common.push_back(name);
  }
  return common;
}

/// A model that can also hand out the layers.
struct Side {
  Side(const std::string& path) : model(load(path)), channels(model, path) {}
  void open(const std::vector<std::string>& layers, const Context& context) {
    session.emplace(std::move(model), SessionOptions{.taps = layers}, context);
    wanted = names_of(session->outputs());
    wanted.insert(wanted.end(), layers.begin(), layers.end());
  }
  TensorMap run(const Feed& feed) { return session->run(feed.inputs, wanted); }
  /// A layer's result as it was before channels were padded and equalised.
  Tensor layer(const TensorMap& values, const std::string& name) const {
    return channels.restored(name, values.at(name));
  }

  Model model;
  ChannelRestorer channels;
  std::optional<Session> session;
  std::vector<std::string> wanted;
};

/// Scores of the layers; those that turn out not to be comparable are left out, with a warning.
class Layers {
 public:
  Layers(const std::vector<std::string>& names, const std::vector<std::string>& metrics) {
    for (const std::string& name : names) cards_.emplace_back(name, metrics);
    usable_.assign(cards_.size(), true);
  }

  void add(const Feed& feed, const Side& a, const TensorMap& from_a, const Side& b,
           const TensorMap& from_b) {
    for (std::size_t i = 0; i < cards_.size(); ++i) {
      if (!usable_[i]) continue;
      const std::string& name = cards_[i].output();
      usable_[i] = info(from_a.at(name).dtype()).is_float && info(from_b.at(name).dtype()).is_float;
      if (!usable_[i]) continue;
      const Tensor in_a = a.layer(from_a, name);
      const Tensor in_b = b.layer(from_b, name);
      usable_[i] = in_a.shape() == in_b.shape();
      if (usable_[i]) {
        cards_[i].add(real_rows(in_a, feed.samples, feed.rows),
                      real_rows(in_b, feed.samples, feed.rows));
      } else if (unlike_++ == 0) {
        first_ =
            format("name={} a={} b={}", name, to_string(in_a.shape()), to_string(in_b.shape()));
      }
    }
  }

  void warn(const Context& context) const {
    if (unlike_ == 0) return;
    context.warn(
        format("compare: layers left out, their shapes differ count={} first {}", unlike_, first_));
  }

  void collect(const Side& a, const Side& b, CompareResult& result) const {
    for (std::size_t i = 0; i < cards_.size(); ++i) {
      if (!usable_[i]) continue;
      result.layers.push_back(cards_[i].scores());
      const std::string& name = cards_[i].output();
      if (a.channels.is_padded(name) || b.channels.is_padded(name)) ++result.padded;
      if (a.channels.is_scaled(name) || b.channels.is_scaled(name)) ++result.equalized;
    }
  }

 private:
  std::vector<ScoreCard> cards_;
  std::vector<bool> usable_;
  std::size_t unlike_ = 0;
  std::string first_;  ///< of those whose shapes differ
};

std::vector<std::string> choose_metrics(const EvaluateOptions& options) {
  if (options.metrics.empty()) return {"cosine", "sqnr", "max_abs"};
  const MetricChoice choice = sort_metrics(options.metrics);
  if (!choice.with_labels.empty()) {
    fail(ErrorKind::Usage,
         "the metric '{}' needs labels; compare measures one model against another",
         choice.with_labels.front());
  }
  return choice.with_reference;
}

}  // namespace

CompareResult compare(const std::string& path_a, const std::string& path_b,
                      const EvaluateOptions& options, const Context& context) {
  const std::vector<std::string> metrics = choose_metrics(options);
  Side a(path_a);
  Side b(path_b);
  const std::vector<std::string> layer_list = common_layers(a.model.graph, b.model.graph);
  a.open(layer_list, context);
  b.open(layer_list, context);
  const auto pairs = pair_outputs(a.session->outputs(), b.session->outputs(), options.output);
  std::vector<ScoreCard> cards;
  for (const OutputPair& pair : pairs) cards.emplace_back(pair.actual, metrics);
  Layers layers(layer_list, metrics);

  CompareResult result;
  FeedReader reader(options, a.session->inputs(), context);
  while (const std::optional<Feed> feed = reader.next()) {
    const TensorMap from_a = a.run(*feed);
    const TensorMap from_b = b.run(*feed);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      cards[i].add(real_rows(from_a.at(pairs[i].actual), feed->samples, feed->rows),
                   real_rows(from_b.at(pairs[i].expected), feed->samples, feed->rows));
    }
    layers.add(*feed, a, from_a, b, from_b);
    result.samples += feed->samples;
  }
  for (const ScoreCard& card : cards) result.outputs.push_back(card.scores());
  layers.warn(context);
  layers.collect(a, b, result);
  return result;
}

}  // namespace quench
