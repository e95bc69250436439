// SPDX-License-Identifier: Apache-2.0
// The weights that a job stores as integers, each with what is asked of it.
#pragma once

#include <map>
#include <string>

#include "plan/weight_sites.h"
#include "quant/weight.h"
#include "quench/quantize.h"

namespace quench {

/// One constant and all its readers.
struct WeightItem {
  std::string name;
  std::vector<plan::WeightSite> sites;  ///< at least one; the first decides the spec
  quant::WeightSpec spec;
  bool dynamic = false;  ///< its readers multiply integers; else they read dequantised floats
};

/// The weights of a graph, or of one inside a node of it; what stays in float goes into the report.
std::vector<WeightItem> find_weight_items(const Graph& graph, const QuantizeOptions& options,
                                          QuantizeReport& report, bool body = false);
/// Gives the item other bits, and what follows from them.
void set_bits(const Graph& graph, const QuantizeOptions& options, int bits, WeightItem& item);
/// Quantises `values`, which stand for the item's constant; an error names the weight.
quant::QuantWeight quantize_named(const WeightItem& item, const Tensor& values, int threads);
/// Quantises the item's constant.
quant::QuantWeight quantize_item(const Graph& graph, const WeightItem& item, int threads);
/// The model's weight, and the model with another in its place.
const Tensor& weight_of(const Model& model, const WeightItem& item);
void put_weight(Model& model, const WeightItem& item, const quant::QuantWeight& weight,
                int threads);
/// How the weight is stored, for the report.
WeightChoice describe(const Graph& graph, const WeightItem& item, const quant::QuantWeight& weight);
/// The choices in the model's metadata, as JSON.
void note_choices(Model& model, const std::vector<WeightChoice>& choices);
/// The bits that such metadata tell, by weight.
std::map<std::string, int> noted_bits(const Model& model);

}  // namespace quench
