// SPDX-License-Identifier: Apache-2.0
// Holds two models against each other, output by output and layer by layer.
#include <algorithm>
#include <unordered_set>

#include "base/format.h"
#include "evaluate/feeds.h"
#include "evaluate/random_inputs.h"
#include "evaluate/scoring.h"

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
  Side(const std::string& path) : model(load(path)) {}
  void open(const std::vector<std::string>& layers, const Context& context) {
    session.emplace(std::move(model), SessionOptions{.taps = layers}, context);
    wanted = names_of(session->outputs());
    wanted.insert(wanted.end(), layers.begin(), layers.end());
  }
  TensorMap run(const Feed& feed) { return session->run(feed.inputs, wanted); }

  Model model;
  std::optional<Session> session;
  std::vector<std::string> wanted;
};

/// Scores of the layers; one that turns out not to be comparable is left out, with a warning.
class Layers {
 public:
  Layers(const std::vector<std::string>& names, const std::vector<std::string>& metrics) {
    for (const std::string& name : names) cards_.emplace_back(name, metrics);
    usable_.assign(cards_.size(), true);
  }

  void add(const Feed& feed, const TensorMap& a, const TensorMap& b, const Context& context) {
    for (std::size_t i = 0; i < cards_.size(); ++i) {
      if (!usable_[i]) continue;
      const std::string& name = cards_[i].output();
      const Tensor& in_a = a.at(name);
      const Tensor& in_b = b.at(name);
      usable_[i] = info(in_a.dtype()).is_float && info(in_b.dtype()).is_float &&
                   in_a.shape() == in_b.shape();
      if (usable_[i]) {
        cards_[i].add(real_rows(in_a, feed.samples, feed.rows),
                      real_rows(in_b, feed.samples, feed.rows));
      } else if (in_a.shape() != in_b.shape()) {
        context.warn(format("compare: layer left out, its shapes differ name={} a={} b={}", name,
                            to_string(in_a.shape()), to_string(in_b.shape())));
      }
    }
  }

  std::vector<OutputScores> scores() const {
    std::vector<OutputScores> result;
    for (std::size_t i = 0; i < cards_.size(); ++i) {
      if (usable_[i]) result.push_back(cards_[i].scores());
    }
    return result;
  }

 private:
  std::vector<ScoreCard> cards_;
  std::vector<bool> usable_;
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
    layers.add(*feed, from_a, from_b, context);
    result.samples += feed->samples;
  }
  for (const ScoreCard& card : cards) result.outputs.push_back(card.scores());
  result.layers = layers.scores();
  return result;
}

}  // namespace quench
