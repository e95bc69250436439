// SPDX-License-Identifier: Apache-2.0
// Compares a quantised model with the float one, layer by layer.
#include "analyze/layer_error.h"

#include "analyze/simulator.h"
#include "evaluate/scoring.h"
#include "plan/facts.h"

namespace quench::analyze {
namespace {

const std::vector<std::string> kMetrics = {"sqnr", "cosine", "mse"};

bool float_in_both(const Graph& a, const Graph& b, const std::string& value) {
  const ValueId mine = a.find(value);
  const ValueId theirs = b.find(value);
  return mine != kNoValue && theirs != kNoValue && plan::maybe_float(a, mine) &&
         plan::maybe_float(b, theirs);
}

}  // namespace

std::vector<ComparedValue> compared_values(const Model& model, const QuantPlan& plan) {
  std::vector<ComparedValue> values;
  const Graph& graph = model.graph;
  for (const Node& node : graph.nodes) {
    const std::string& name = output_name(graph, node);
    if (!plan::is_layer(node) || name.empty()) continue;
    values.push_back({.layer = plan::key_of(graph, node),
                      .op_type = node.op_type,
                      .value = plan.result_of(name)});
  }
  return values;
}

std::vector<LayerError> layer_errors(const Model& model, const Model& quantized,
                                     const std::vector<ComparedValue>& values,
                                     std::span<const TensorMap> batches, const Context& context) {
  std::vector<ComparedValue> both;
  SessionOptions float_taps;
  SessionOptions quantized_taps;
  for (const ComparedValue& each : values) {
    if (!float_in_both(model.graph, quantized.graph, each.value)) continue;
    both.push_back(each);
    float_taps.taps.push_back(each.value);
    quantized_taps.taps.push_back(seen_as(quantized.graph, each.value));
  }
  if (both.empty()) return {};
  Session expected(model, float_taps, context);
  Session actual(quantized, quantized_taps, context);
  std::vector<ScoreCard> cards;
  for (const ComparedValue& each : both) cards.emplace_back(each.value, kMetrics);
  std::vector<bool> seen(both.size(), false);
  std::int64_t done = 0;
  for (const TensorMap& batch : batches) {
    context.check_cancelled();
    const TensorMap want = expected.run(batch, float_taps.taps);
    const TensorMap got = actual.run(batch, quantized_taps.taps);
    for (std::size_t i = 0; i < both.size(); ++i) {
      const Tensor& is = got.at(quantized_taps.taps[i]);
      const Tensor& should = want.at(float_taps.taps[i]);
      if (is.size() != should.size() || is.size() == 0) continue;
      cards[i].add(is, should);
      seen[i] = true;
    }
    context.report("comparing layers", ++done, static_cast<std::int64_t>(batches.size()));
  }
  std::vector<LayerError> errors;
  for (std::size_t i = 0; i < both.size(); ++i) {
    if (!seen[i]) continue;
    const auto scores = cards[i].scores().scores;
    errors.push_back({.layer = both[i].layer,
                      .op_type = both[i].op_type,
                      .value = both[i].value,
                      .sqnr = scores.at("sqnr"),
                      .cosine = scores.at("cosine"),
                      .mse = scores.at("mse")});
  }
  return errors;
}

}  // namespace quench::analyze
