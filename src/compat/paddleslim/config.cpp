// SPDX-License-Identifier: Apache-2.0
// PaddleSlim's QuantConfig: observers, or none, of all layers and of some.
#include "base/format.h"
#include "compat/paddleslim/names.h"
#include "quench/observers.h"

namespace quench::paddleslim {
namespace {

template <typename T>
void set_once(std::optional<T>& setting, const std::optional<T>& wanted, std::string_view what) {
  if (!wanted) return;
  if (setting && *setting != *wanted) {
    fail(ErrorKind::Usage, "observers with {} {} and {}: a configuration has one for all", what,
         *setting, *wanted);
  }
  setting = wanted;
}

}  // namespace

void QuantConfig::set_histogram(const Observer& observer) {
  set_once(percent_, observer.percent, "percent");
  set_once(bins_count_, observer.bins_count, "bins_count");
  hist_percent = percent_.value_or(hist_percent);
  bins = bins_count_.value_or(bins);
}

QuantRule QuantConfig::rule_of(const Setting& activation, const Setting& weight) {
  QuantRule rule;
  rule.skip = !activation && !weight;
  if (rule.skip) return rule;
  // Said in every rule, because a wider one may say otherwise.
  rule.type = activation ? QuantType::Full : QuantType::Weight;
  rule.weight_observer = weight ? weight->name : "none";
  if (activation) {
    rule.activation_observer = activation->name;
    rule.activation_bits = activation->quant_bits;
    set_histogram(*activation);
  }
  if (weight) {
    rule.weight_bits = weight->quant_bits;
    rule.per_channel = weight->name.starts_with("channel_wise_");
    set_histogram(*weight);
  }
  return rule;
}

QuantConfig::QuantConfig(const Setting& activation, const Setting& weight) {
  global = rule_of(activation, weight);
}

void QuantConfig::add_layer_config(const Names& layers, const Setting& activation,
                                   const Setting& weight) {
  for (const std::string& layer : layers) by_layer[layer] = rule_of(activation, weight);
}

void QuantConfig::add_name_config(const Names& names, const Setting& activation,
                                  const Setting& weight) {
  // The last call wins, as in Paddle: the first that matches does here.
  for (const std::string& name : names) {
    by_name.emplace(by_name.begin(), name, rule_of(activation, weight));
  }
}

void QuantConfig::add_type_config(const Names& types, const Setting& activation,
                                  const Setting& weight) {
  for (const std::string& type : types) {
    const auto paddle = compat::paddle_types().find(type);
    const Names known = paddle == compat::paddle_types().end() ? Names{type} : paddle->second;
    for (const std::string& each : known) by_type[each] = rule_of(activation, weight);
  }
}

}  // namespace quench::paddleslim
