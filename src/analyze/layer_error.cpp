// SPDX-License-Identifier: Apache-2.0
// Compares a quantised model with the float one, layer by layer.
#include "analyze/layer_error.h"

#include <map>
#include <memory>

#include "analyze/simulator.h"
#include "plan/facts.h"
#include "quench/metrics.h"

namespace quench::analyze {
namespace {

/// The metrics of one layer.
struct Card {
  std::unique_ptr<Metric> sqnr = make_metric("sqnr");
  std::unique_ptr<Metric> cosine = make_metric("cosine");
  std::unique_ptr<Metric> mse = make_metric("mse");
  bool seen = false;

  void add(const Tensor& actual, const Tensor& expected) {
    if (actual.size() != expected.size() || actual.size() == 0) return;
    sqnr->add(actual, expected);
    cosine->add(actual, expected);
    mse->add(actual, expected);
    seen = true;
  }
};

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
  std::vector<Card> cards(both.size());
  std::int64_t done = 0;
  for (const TensorMap& batch : batches) {
    context.check_cancelled();
    const TensorMap want = expected.run(batch, float_taps.taps);
    const TensorMap got = actual.run(batch, quantized_taps.taps);
    for (std::size_t i = 0; i < both.size(); ++i) {
      cards[i].add(got.at(quantized_taps.taps[i]), want.at(float_taps.taps[i]));
    }
    context.report("comparing layers", ++done, static_cast<std::int64_t>(batches.size()));
  }
  std::vector<LayerError> errors;
  for (std::size_t i = 0; i < both.size(); ++i) {
    if (!cards[i].seen) continue;
    errors.push_back({.layer = both[i].layer,
                      .op_type = both[i].op_type,
                      .value = both[i].value,
                      .sqnr = cards[i].sqnr->value(),
                      .cosine = cards[i].cosine->value(),
                      .mse = cards[i].mse->value()});
  }
  return errors;
}

}  // namespace quench::analyze
