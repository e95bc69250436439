// SPDX-License-Identifier: Apache-2.0
// Dynamic quantisation, step by step: products on integers whose activations are quantised while
// the model runs, and embeddings stored as integers.
#include "lower/dynamic.h"

#include <chrono>
#include <map>
#include <set>

#include "base/format.h"
#include "pipeline/disk_bytes.h"
#include "pipeline/memory.h"
#include "pipeline/quantize_steps.h"
#include "pipeline/weight.h"
#include "pipeline/weight_samples.h"
#include "quench/formats.h"
#include "tune/balance_inputs.h"

namespace quench {
namespace {

using Clock = std::chrono::steady_clock;

const Node& node_of(const Graph& graph, const plan::WeightSite& site) {
  return graph.nodes[static_cast<std::size_t>(site.node)];
}

bool is_gather(const Graph& graph, const plan::WeightSite& site) {
  return node_of(graph, site).op_type == "Gather";
}

/// What becomes of the readers of one weight.
struct Readers {
  WeightItem tables;    ///< Gather
  WeightItem products;  ///< MatMul and Gemm that agree on how the weight lies
};

/// Sorts the readers of an item; those that stay in float go into the report.
Readers sort_readers(const Graph& graph, const WeightItem& item, QuantizeReport& report) {
  Readers readers;
  readers.tables.name = readers.products.name = item.name;
  for (const plan::WeightSite& site : item.sites) {
    if (is_gather(graph, site)) {
      readers.tables.sites.push_back(site);
      continue;
    }
    std::string reason = lower::refuse_dynamic(graph, site);
    const auto& chosen = readers.products.sites;
    if (reason.empty() && !chosen.empty() && chosen.front().channel_axis != site.channel_axis) {
      reason = "another product reads its weight transposed";
    }
    if (reason.empty()) {
      readers.products.sites.push_back(site);
    } else {
      const Node& node = node_of(graph, site);
      report.float_layers.push_back(
          {.node = label(graph, node), .op_type = node.op_type, .reason = std::move(reason)});
    }
  }
  return readers;
}

/// int8 by index of the table, as converter_lite has it in both strategies.
quant::WeightSpec table_spec(const plan::WeightSite& site) {
  return {.bits = 8, .symmetric = false, .axis = site.channel_axis};
}

class Job {
 public:
  Job(Model& model, const QuantizeOptions& options, const Context& context, QuantizeReport& report)
      : model_(model), options_(options), context_(context), report_(report) {}

  void run(const std::vector<WeightItem>& items) {
    std::vector<Readers> all;
    std::vector<plan::WeightSite> products;
    for (const WeightItem& item : items) {
      all.push_back(sort_readers(model_.graph, item, report_));
      const auto& sites = all.back().products.sites;
      products.insert(products.end(), sites.begin(), sites.end());
    }
    const bool rows = options_.dynamic.quant_strategy == DynamicQuantOptions::Strategy::ACWL;
    lower::DynamicWriter writer(
        model_, rows ? lower::ActivationGrids::Row : lower::ActivationGrids::Layer, products);
    if (rows) balance(all, writer);
    for (std::size_t i = 0; i < all.size(); ++i) {
      context_.check_cancelled();
      write(all[i], rows, writer);
      context_.report("quantising", static_cast<std::int64_t>(i + 1),
                      static_cast<std::int64_t>(all.size()));
    }
    if (report_.weights.empty()) {
      fail(ErrorKind::Unsupported,
           "the model has no matrix product or embedding with a constant float weight: dynamic "
           "quantisation has nothing to do; --type full or --type weight has");
    }
    writer.finish();
    note_choices(model_, report_.weights);
  }

 private:
  ValueId activation(const plan::WeightSite& site) const {
    return node_of(model_.graph, site).inputs[0];
  }

  /// Weights with one grid each suffer from rows of unlike ranges: their inputs can be scaled.
  void balance(const std::vector<Readers>& all, lower::DynamicWriter& writer) {
    std::map<ValueId, std::vector<std::vector<double>>> ranges;
    std::set<ValueId> mixed;
    for (const Readers& readers : all) {
      const auto& sites = readers.products.sites;
      for (const plan::WeightSite& site : sites) {
        if (activation(site) != activation(sites.front())) {
          mixed.insert({activation(site), activation(sites.front())});
        }
      }
      if (sites.empty()) continue;
      ranges[activation(sites.front())].push_back(
          tune::row_ranges(lower::product_matrix(model_.graph, sites.front())));
    }
    for (const auto& [value, all_ranges] : ranges) {
      if (mixed.contains(value)) continue;
      std::vector<float> factors = tune::balance_inputs(all_ranges);
      if (factors.empty()) continue;
      factors_[value] = factors;
      writer.scale_inputs(value, std::move(factors));
    }
  }

  Tensor matrix_of(const plan::WeightSite& site) const {
    const Tensor matrix = lower::product_matrix(model_.graph, site);
    const auto found = factors_.find(activation(site));
    return found == factors_.end() ? matrix : tune::divide_rows(matrix, found->second);
  }

  void write(Readers& readers, bool rows, lower::DynamicWriter& writer) {
    const Graph& graph = model_.graph;
    // The float weight goes with its last reader: tables first would leave products none.
    if (!readers.products.sites.empty()) {
      const plan::WeightSite& site = readers.products.sites.front();
      readers.products.spec = {.bits = 8, .symmetric = true, .axis = rows ? -1 : 1};
      const quant::QuantWeight weight = named(readers.products, matrix_of(site));
      report_.weights.push_back(describe(graph, readers.products, weight));
      report_.integer_nodes += static_cast<std::int64_t>(readers.products.sites.size());
      writer.multiply(readers.products.sites, weight);
    }
    if (!readers.tables.sites.empty()) {
      const plan::WeightSite& site = readers.tables.sites.front();
      readers.tables.spec = table_spec(site);
      const quant::QuantWeight weight = named(readers.tables, *graph.constant(site.value));
      report_.weights.push_back(describe(graph, readers.tables, weight));
      writer.replace(readers.tables.sites, weight);
    }
  }

  quant::QuantWeight named(const WeightItem& item, const Tensor& matrix) const {
    try {
      return quant::quantize_weight(matrix, item.spec, context_.num_threads());
    } catch (Error& error) {
      throw error.in(format("weight '{}'", item.name));
    }
  }

  Model& model_;
  const QuantizeOptions& options_;
  const Context& context_;
  QuantizeReport& report_;
  std::map<ValueId, std::vector<float>> factors_;  ///< of activations whose inputs are scaled
};

}  // namespace

QuantizeReport quantize_dynamic(const std::string& model_path, const std::string& out_path,
                                const QuantizeOptions& options, const Context& context,
                                Outputs& outputs, Model& written) {
  const auto began = Clock::now();
  const PeakMemory memory;
  if (options.weight.bits != 8) {
    fail(ErrorKind::Usage, "dynamic quantisation takes 8 bits, not {}", options.weight.bits);
  }
  QuantizeReport report;
  report.warnings = options.notes;
  Model model = load(model_path);
  report.bytes_before = bytes_on_disk(model_path, model);
  set_input_shapes(model, options.input_shapes);
  infer_and_warn(model, context);
  model = prepare_weights(std::move(model), QuantType::Dynamic);
  const std::vector<WeightItem> items = find_weight_items(model.graph, options, report);
  if (items.empty()) fail_without_weights();
  WeightSamples samples(model, options, context);
  Job(model, options, context, report).run(items);
  report.bytes_after = static_cast<std::int64_t>(save(model, out_path, {}, outputs));
  samples.judge(model, report);
  written = std::move(model);
  report.seconds = std::chrono::duration<double>(Clock::now() - began).count();
  report.peak_memory_mb = memory.peak_mb();
  return report;
}

}  // namespace quench
