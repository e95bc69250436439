// SPDX-License-Identifier: Apache-2.0
// From options and rules to what is asked of each weight.
#include "tune/weight_items.h"

#include <algorithm>
#include <array>
#include <bit>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/nearest.h"
#include "plan/facts.h"

namespace quench {
namespace {

/// From here on the scale is so fine that neither a search nor a correction changes anything.
constexpr int kFineBits = 8;
/// The key of the metadata that say what became of each weight.
constexpr const char* kWeightsNote = "quench.weights";

bool least_error(const std::string& observer, int bits) {
  static const std::vector<std::string> whole = {"abs_max", "channel_wise_abs_max", "min_max"};
  static const std::vector<std::string> search = {"mse", "channel_wise_mse"};
  if (observer.empty()) return bits < kFineBits;
  if (std::ranges::find(whole, observer) != whole.end()) return false;
  if (std::ranges::find(search, observer) != search.end()) return true;
  std::vector<std::string> all = whole;
  all.insert(all.end(), search.begin(), search.end());
  fail(ErrorKind::Usage, "there is no observer '{}' for weights{}; there are {}", observer,
       did_you_mean(observer, all), fmt::join(all, ", "));
}

/// Bits of a signed integer of this magnitude.
int width_of(int greatest) {
  return static_cast<int>(std::bit_width(static_cast<unsigned>(std::max(1, greatest)))) + 1;
}

void check(const WeightQuantOptions& options) {
  if (options.bits < 0 || options.bits > 16) {
    fail(ErrorKind::Usage, "weights take 1 to 16 bits, or 0 for mixed bits, not {}", options.bits);
  }
  constexpr std::array<std::int64_t, 5> kSizes = {0, 16, 32, 64, 128};
  if (std::ranges::find(kSizes, options.group_size) == kSizes.end()) {
    fail(ErrorKind::Usage, "weights are grouped by 16, 32, 64 or 128, not by {}",
         options.group_size);
  }
}

quant::WeightSpec spec_of(const Graph& graph, const plan::WeightSite& site,
                          const QuantizeOptions& options) {
  const Node& node = site.node_in(graph);
  const QuantRule rule = options.config.rule_for(plan::key_of(graph, node), node.op_type);
  const WeightQuantOptions& weight = options.weight;
  quant::WeightSpec spec;
  spec.bits = rule.weight_bits.value_or(weight.bits);
  // A zero point takes room and at so many steps gains nothing.
  spec.symmetric = weight.symmetric || spec.bits >= kFineBits;
  spec.axis = rule.per_channel.value_or(weight.per_channel) ? site.channel_axis : -1;
  const Shape& shape = site.weight_in(graph).shape();
  if (weight.group_size > 0 && site.sum_axis >= 0 &&
      shape[static_cast<std::size_t>(site.sum_axis)] > weight.group_size) {
    spec.axis = site.sum_axis;
    spec.block = weight.group_size;
  }
  // Layers of full quantisation have their weights from the plan.
  if (rule.type.value_or(options.type) != QuantType::Full) {
    spec.least_error = least_error(rule.weight_observer.value_or(weight.observer), spec.bits);
  }
  spec.keep_mean = weight.bias_correction && spec.bits < kFineBits;
  return spec;
}

}  // namespace

std::vector<WeightItem> find_weight_items(const Graph& graph, const QuantizeOptions& options,
                                          QuantizeReport& report, bool body) {
  check(options.weight);
  const plan::WeightSites found =
      plan::find_weights(graph, {.config = options.config,
                                 .min_size = options.min_quant_weight_size,
                                 .min_channel = options.min_quant_weight_channel,
                                 .body = body});
  for (const plan::WeightRefusal& refusal : found.refusals) {
    const Node& node = node_called(graph, refusal.node);
    report.float_layers.push_back(
        {.node = plan::key_of(graph, node), .op_type = node.op_type, .reason = refusal.reason});
  }
  std::vector<WeightItem> items;
  std::map<ValueId, std::size_t> places;
  for (const plan::WeightSite& site : found.sites) {
    const ValueId value = site.value_in(graph);
    const auto [place, fresh] = places.try_emplace(value, items.size());
    if (fresh) {
      items.push_back(
          {.name = graph[value].name, .sites = {}, .spec = spec_of(graph, site, options)});
    }
    items[place->second].sites.push_back(site);
  }
  return items;
}

void set_bits(const Graph& graph, const QuantizeOptions& options, int bits, WeightItem& item) {
  QuantizeOptions asked = options;
  const Node& node = item.sites.front().node_in(graph);
  asked.config.by_layer[plan::key_of(graph, node)].weight_bits = bits;
  item.spec = spec_of(graph, item.sites.front(), asked);
}

quant::QuantWeight quantize_named(const WeightItem& item, const Tensor& values, int threads) {
  try {
    return quant::quantize_weight(values, item.spec, threads);
  } catch (Error& error) {
    throw error.in(format("weight '{}'", item.name));
  }
}

quant::QuantWeight quantize_item(const Graph& graph, const WeightItem& item, int threads) {
  return quantize_named(item, item.sites.front().weight_in(graph), threads);
}

const Tensor& weight_of(const Model& model, const WeightItem& item) {
  return item.sites.front().weight_in(model.graph);
}

void put_weight(Model& model, const WeightItem& item, const quant::QuantWeight& weight,
                int threads) {
  Tensor values = quant::dequantize_weight(weight, threads);
  const ValueId value = item.sites.front().value_in(model.graph);
  const DType dtype = model.graph[value].constant->dtype();
  model.graph[value].constant =
      dtype == DType::Float32 ? std::move(values) : convert(values, dtype);
}

WeightChoice describe(const Graph& graph, const WeightItem& item,
                      const quant::QuantWeight& weight) {
  const Node& node = item.sites.front().node_in(graph);
  const auto size = [](const Tensor& tensor) {
    return tensor.defined() ? static_cast<std::int64_t>(tensor.num_bytes()) : 0;
  };
  const bool stepped = weight.spec.step > 0;
  return {.node = plan::key_of(graph, node),
          .op_type = node.op_type,
          .weight = item.name,
          .bits = stepped ? width_of(quant::greatest_integer(weight)) : weight.spec.bits,
          .elements = weight.integers.size(),
          .bytes = size(weight.integers) + size(weight.scale) + size(weight.zero_point),
          .error = weight.relative_error(),
          .method = stepped                   ? "step"
                    : weight.spec.least_error ? "mse"
                                              : "abs_max"};
}

std::map<std::string, int> noted_bits(const Model& model) {
  std::map<std::string, int> bits;
  for (const auto& [key, text] : model.metadata) {
    if (key != kWeightsNote) continue;
    const auto json = nlohmann::json::parse(text, nullptr, false);
    if (!json.is_array()) continue;
    for (const auto& each : json) {
      const bool whole = each.is_object() && each.contains("weight") && each.contains("bits") &&
                         each["weight"].is_string() && each["bits"].is_number_integer();
      if (whole) bits[each["weight"].get<std::string>()] = each["bits"].get<int>();
    }
  }
  return bits;
}

void note_choices(Model& model, const std::vector<WeightChoice>& choices) {
  nlohmann::json json = nlohmann::json::array();
  for (const WeightChoice& choice : choices) {
    json.push_back({{"weight", choice.weight}, {"bits", choice.bits}, {"method", choice.method}});
  }
  std::erase_if(model.metadata, [](const auto& entry) { return entry.first == kWeightsNote; });
  model.metadata.emplace_back(kWeightsNote, json.dump());
}

}  // namespace quench
