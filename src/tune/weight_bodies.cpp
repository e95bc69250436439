// SPDX-License-Identifier: Apache-2.0
// Each body as a model of its own for a while.
#include "tune/weight_bodies.h"

#include <algorithm>
#include <functional>

#include "lower/weight_only.h"
#include "passes/rewriter.h"
#include "quench/lower.h"
#include "tune/mixed_bits.h"

namespace quench {
namespace {

/// The version of operators that blocks, and integers that are not of 8 bits, need.
constexpr std::int64_t kBlockOpset = 21;

void visit_bodies(Graph& graph, const std::function<void(Graph&)>& visit) {
  for (Node& node : graph.nodes) {
    for (Graph* inner : passes::mutable_subgraphs(node)) {
      visit(*inner);
      visit_bodies(*inner, visit);
    }
  }
}

void visit_bodies(const Graph& graph, const std::function<void(const Graph&)>& visit) {
  for_each_graph(graph, [&](const Graph& each) {
    if (&each != &graph) visit(each);
  });
}

std::vector<WeightItem> items_of(const Graph& body, const QuantizeOptions& options,
                                 QuantizeReport& report, const Context& context) {
  std::vector<WeightItem> items = find_weight_items(body, options, report, true);
  if (options.weight.bits != 0) return items;
  const double limit = options.weight.init_scale;
  for (WeightItem& item : items) {
    item.spec = tune::coarsest_step(item.sites.front().weight_in(body), item.spec, limit, limit,
                                    context.num_threads());
  }
  return items;
}

bool needs_new_operators(const WeightItem& item) {
  return item.spec.block > 0 || item.spec.bits <= 4 || item.spec.bits > 8;
}

}  // namespace

std::size_t count_body_weights(const Model& model, const QuantizeOptions& options) {
  std::size_t count = 0;
  QuantizeReport unused;
  visit_bodies(model.graph, [&](const Graph& body) {
    count += find_weight_items(body, options, unused, true).size();
  });
  return count;
}

void quantize_bodies(Model& model, const QuantizeOptions& options, const Context& context,
                     QuantizeReport& report) {
  if (count_body_weights(model, options) == 0) return;
  bool lift = false;
  QuantizeReport unused;
  visit_bodies(std::as_const(model).graph, [&](const Graph& body) {
    const std::vector<WeightItem> items = items_of(body, options, unused, context);
    lift = lift || std::ranges::any_of(items, needs_new_operators);
  });
  // All graphs of a model have one version.
  if (lift && model.opset() < kBlockOpset) lift_opset(model, kBlockOpset);
  visit_bodies(model.graph, [&](Graph& body) {
    const std::vector<WeightItem> items = items_of(body, options, report, context);
    Model shell;
    shell.opsets = model.opsets;
    shell.graph = std::move(body);
    lower::WeightWriter writer(shell);
    for (const WeightItem& item : items) {
      context.check_cancelled();
      const quant::QuantWeight weight = quantize_item(shell.graph, item, context.num_threads());
      report.weights.push_back(describe(shell.graph, item, weight));
      writer.replace(item.sites, weight);
    }
    writer.place();
    body = std::move(shell.graph);
  });
  infer_types(model);
  verify(model);
}

}  // namespace quench
