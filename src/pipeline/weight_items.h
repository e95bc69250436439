// SPDX-License-Identifier: Apache-2.0
// The weights that a job stores as integers, each with what is asked of it.
#pragma once

#include <map>
#include <string>

#include "lower/weight_only.h"
#include "quench/quantize.h"

namespace quench {

/// One constant and all its readers.
struct WeightItem {
  std::string name;
  std::vector<plan::WeightSite> sites;  ///< at least one; the first decides the grid
  quant::WeightSpec spec;
};

/// A model ready for weight-only or dynamic quantisation: functions inlined, constants lifted,
/// weights that are computed from constants folded, the rest untouched. A transposed table that is
/// read by row too becomes one constant for both readers in a weight-only model; a dynamic product
/// wants its integers as they lie.
Model prepare_weights(Model model, QuantType type);
/// The weights of a graph, or of one inside a node of it; what stays in float goes into the report.
std::vector<WeightItem> find_weight_items(const Graph& graph, const QuantizeOptions& options,
                                          QuantizeReport& report, bool body = false);
/// Error(Unsupported): there is no weight to quantise.
[[noreturn]] void fail_without_weights();
/// Quantises an item; an error names the weight.
quant::QuantWeight quantize_item(const Graph& graph, const WeightItem& item, int threads);
/// How the weight is stored, for the report.
WeightChoice describe(const Graph& graph, const WeightItem& item, const quant::QuantWeight& weight);
/// The choices in the model's metadata, as JSON.
void note_choices(Model& model, const std::vector<WeightChoice>& choices);
/// The bits that such metadata tell, by weight.
std::map<std::string, int> noted_bits(const Model& model);

}  // namespace quench
