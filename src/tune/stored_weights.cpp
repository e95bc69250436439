// SPDX-License-Identifier: Apache-2.0
// How stored weights come into a graph.
#include "tune/stored_weights.h"

#include <map>
#include <set>

#include "lower/dynamic.h"
#include "tune/balance_inputs.h"

namespace quench::tune {
namespace {

using Strategy = DynamicQuantOptions::Strategy;

/// Writes one weight after the other, so that few are held twice.
class Writer {
 public:
  Writer(const State& state, std::vector<StoredItem> items, Model& model, QuantizeReport& report)
      : state_(state),
        model_(model),
        report_(report),
        items_(std::move(items)),
        rows_(state.options.dynamic.quant_strategy == Strategy::ACWL),
        writer_(model, rows_ ? lower::ActivationScales::Row : lower::ActivationScales::Layer,
                products()) {}

  void run(const Storing& how) {
    if (rows_) balance();
    for (std::size_t i = 0; i < items_.size(); ++i) {
      state_.context.check_cancelled();
      items_[i].item.dynamic ? multiply(items_[i].item) : replace(items_[i], how);
      if (how.progress) how.progress(i + 1, items_.size());
    }
    writer_.finish();
  }

 private:
  std::vector<plan::WeightSite> products() const {
    std::vector<plan::WeightSite> sites;
    for (const auto& [item, place] : items_) {
      if (item.dynamic) sites.insert(sites.end(), item.sites.begin(), item.sites.end());
    }
    return sites;
  }

  ValueId activation(const plan::WeightSite& site) const {
    return site.node_in(model_.graph).inputs[0];
  }

  /// Weights with one scale suffer from rows of unlike ranges: their inputs can be scaled.
  void balance() {
    std::map<ValueId, std::vector<std::vector<double>>> ranges;
    std::set<ValueId> mixed;
    for (const auto& [item, place] : items_) {
      if (!item.dynamic) continue;
      for (const plan::WeightSite& site : item.sites) {
        if (activation(site) != activation(item.sites.front())) {
          mixed.insert({activation(site), activation(item.sites.front())});
        }
      }
      ranges[activation(item.sites.front())].push_back(
          row_ranges(lower::product_matrix(model_.graph, item.sites.front())));
    }
    for (const auto& [value, all_ranges] : ranges) {
      if (mixed.contains(value)) continue;
      std::vector<float> factors = balance_inputs(all_ranges);
      if (factors.empty()) continue;
      factors_[value] = factors;
      writer_.scale_inputs(value, std::move(factors));
    }
  }

  void multiply(const WeightItem& item) {
    const plan::WeightSite& site = item.sites.front();
    Tensor matrix = lower::product_matrix(model_.graph, site);
    const auto found = factors_.find(activation(site));
    if (found != factors_.end()) matrix = divide_rows(matrix, found->second);
    const quant::QuantWeight weight = quantize_named(item, matrix, state_.context.num_threads());
    report_.weights.push_back(describe(model_.graph, item, weight));
    report_.integer_nodes += static_cast<std::int64_t>(item.sites.size());
    writer_.multiply(item.sites, weight);
  }

  void replace(const StoredItem& stored, const Storing& how) {
    const StoredIntegers rounded = how.round(stored);
    report_.weights.push_back(describe(model_.graph, stored.item, rounded.weight));
    if (rounded.by_gptq) report_.weights.back().method = "gptq";
    writer_.replace(stored.item.sites, rounded.weight);
  }

  const State& state_;
  Model& model_;
  QuantizeReport& report_;
  std::vector<StoredItem> items_;
  bool rows_;
  lower::DynamicWriter writer_;
  std::map<ValueId, std::vector<float>> factors_;  ///< of activations whose inputs are scaled
};

}  // namespace

StoredIntegers round_stored(const State& state, const Model& model, const StoredItem& stored) {
  if (stored.place < state.rounded.size() && state.rounded[stored.place]) {
    return {.weight = *state.rounded[stored.place], .by_gptq = true};
  }
  const int threads = state.context.num_threads();
  const Tensor& constant = weight_of(model, stored.item);
  StoredIntegers result{.weight = quantize_named(stored.item, constant, threads)};
  if (stored.place >= state.moments.size() || !state.moments[stored.place]) return result;
  if (auto better = gptq(constant, result.weight, *state.moments[stored.place], threads)) {
    result = {.weight = std::move(*better), .by_gptq = true};
  }
  return result;
}

void put_stored(const State& state, std::vector<StoredItem> items, const Storing& how, Model& model,
                QuantizeReport& report) {
  if (!items.empty()) Writer(state, std::move(items), model, report).run(how);
}

}  // namespace quench::tune
