// SPDX-License-Identifier: Apache-2.0
// Which constants are stored as integers, and how they come into the graph.
#include "job/stored_weights.h"

#include <algorithm>

#include "base/format.h"
#include "formats/registry.h"
#include "lower/dynamic.h"
#include "ops/facts.h"
#include "plan/facts.h"
#include "tune/stored_weights.h"
#include "tune/weight_bodies.h"

namespace quench::job {
namespace {

using Strategy = DynamicQuantOptions::Strategy;

bool is_gather(const Graph& graph, const plan::WeightSite& site) {
  return site.node_in(graph).op_type == "Gather";
}

/// What the rules say of a node, or the whole job's type.
QuantType type_of(const Job& job, const Graph& graph, const plan::WeightSite& site) {
  const Node& node = site.node_in(graph);
  const QuantRule rule = job.options.config.rule_for(plan::key_of(graph, node), node.op_type);
  return rule.type.value_or(job.options.type);
}

/// Products on integers, and the tables that other readers of the same weight gather from. A
/// reader that can be neither goes into the report.
void add_dynamic(Job& job, const WeightItem& item) {
  const Graph& graph = job.model.graph;
  const bool rows = job.options.dynamic.quant_strategy == Strategy::ACWL;
  WeightItem products{.name = item.name,
                      .sites = {},
                      .spec = {.bits = 8, .symmetric = true, .axis = rows ? -1 : 1},
                      .dynamic = true};
  // int8 by index of the table, as converter_lite has it in both strategies.
  WeightItem tables{.name = item.name, .sites = {}, .spec = {.bits = 8, .symmetric = false}};
  for (const plan::WeightSite& site : item.sites) {
    if (is_gather(graph, site)) {
      tables.spec.axis = site.channel_axis;
      tables.sites.push_back(site);
      continue;
    }
    std::string reason = lower::refuse_dynamic(graph, site);
    if (reason.empty() && !products.sites.empty() &&
        products.sites.front().channel_axis != site.channel_axis) {
      reason = "another product reads its weight transposed";
    }
    if (reason.empty()) {
      products.sites.push_back(site);
    } else {
      const Node& node = site.node_in(graph);
      job.report.float_layers.push_back({.node = plan::key_of(graph, node),
                                         .op_type = node.op_type,
                                         .reason = std::move(reason)});
    }
  }
  // The float weight goes with its last reader: tables first would leave products none.
  if (!products.sites.empty()) job.stored.push_back(std::move(products));
  if (!tables.sites.empty()) job.stored.push_back(std::move(tables));
}

/// The readers of one weight that a type of quantisation is for.
WeightItem readers_of(Job& job, const WeightItem& item, QuantType type) {
  const bool keeps = !job.out_path.empty() && written_model(job.out_path).format.float_recurrent;
  const Graph& graph = job.model.graph;
  WeightItem part{.name = item.name, .sites = {}, .spec = item.spec};
  for (const plan::WeightSite& site : item.sites) {
    if (type_of(job, graph, site) != type) continue;
    const Node& node = site.node_in(graph);
    if (keeps && ops::facts(node).weight == ops::WeightKind::Recurrent) {
      job.report.float_layers.push_back({.node = plan::key_of(graph, node),
                                         .op_type = node.op_type,
                                         .reason = "the output's format has floats there"});
      continue;
    }
    part.sites.push_back(site);
  }
  return part;
}

void check_found(const Job& job, bool any) {
  if (!job.stored.empty() || job.is_full()) return;
  if (job.options.type == QuantType::Weight && count_body_weights(job.model, job.options) > 0) {
    return;
  }
  if (job.options.type == QuantType::Dynamic && any) {
    fail(ErrorKind::Unsupported,
         "the model has no matrix product or embedding with a constant float weight: dynamic "
         "quantisation has nothing to do; --type full or --type weight has");
  }
  fail(ErrorKind::Unsupported,
       "no weight of the model can be quantised: Conv, ConvTranspose, Gemm, MatMul, Gather, LSTM "
       "and GRU with constant float weights can");
}

}  // namespace

void plan_stored_weights(Job& job) {
  const QuantConfig& config = job.options.config;
  if (job.is_full() && !config.mixes_types()) return;
  if (job.options.type == QuantType::Dynamic && job.options.weight.bits != 8) {
    fail(ErrorKind::Usage, "dynamic quantisation takes 8 bits, not {}", job.options.weight.bits);
  }
  QuantizeReport found;
  const std::vector<WeightItem> items = find_weight_items(job.model.graph, job.options, found);
  for (const WeightItem& item : items) {
    WeightItem alone = readers_of(job, item, QuantType::Weight);
    const WeightItem products = readers_of(job, item, QuantType::Dynamic);
    if (!products.sites.empty()) add_dynamic(job, products);
    if (!alone.sites.empty()) job.stored.push_back(std::move(alone));
  }
  // The plan has its own reasons for what stays in float.
  if (!job.is_full()) {
    auto& all = job.report.float_layers;
    all.insert(all.end(), found.float_layers.begin(), found.float_layers.end());
  }
  check_found(job, !items.empty());
}

bool wants_gptq(const Job& job) {
  return job.options.weight.gptq || std::ranges::any_of(job.stored, [&](const WeightItem& item) {
           return !item.dynamic && item.spec.bits <= tune::kGptqBits;
         });
}

void lower_stored_weights(Job& job, Model& model) {
  std::vector<tune::StoredItem> items;
  for (const WeightItem& item : job.stored) items.push_back({.item = item, .place = items.size()});
  tune::Storing how;
  how.round = [&](const tune::StoredItem& stored) {
    tune::StoredIntegers rounded = tune::round_stored(job, model, stored);
    // What the inputs look like is as large as the weight.
    if (stored.place < job.moments.size()) job.moments[stored.place].reset();
    rounded.weight.integers = job.kept(std::move(rounded.weight.integers));
    return rounded;
  };
  how.progress = [&](std::size_t done, std::size_t all) {
    job.context.report("quantising", static_cast<std::int64_t>(done),
                       static_cast<std::int64_t>(all));
  };
  tune::put_stored(job, std::move(items), how, model, job.report);
  if (job.options.type == QuantType::Weight) {
    quantize_bodies(model, job.options, job.context, job.report);
  }
  if (!job.report.weights.empty()) note_choices(model, job.report.weights);
}

}  // namespace quench::job
