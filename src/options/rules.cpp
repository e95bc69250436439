// SPDX-License-Identifier: Apache-2.0
// --rule: a rule of the quantisation's configuration in one word.
#include <charconv>

#include "base/nearest.h"
#include "options/row.h"

namespace quench::options {
namespace {

[[noreturn]] void refuse(const std::string& text, const std::string& why) {
  fail(ErrorKind::Usage,
       "--rule '{}': {}; as in 'name:conv*:activation_observer=KL,bits=8', "
       "'type:MatMul:skip', 'global:per_channel=false'",
       text, why);
}

int bits_of(const std::string& text, const std::string& value) {
  int bits = 0;
  const char* end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, bits);
  if (error != std::errc() || stop != end || bits < 2 || bits > 16) {
    refuse(text, format("bits take 2 to 16, got '{}'", value));
  }
  return bits;
}

bool truth_of(const std::string& text, const std::string& key, const std::string& value) {
  if (value == "true") return true;
  if (value != "false") refuse(text, format("{} takes true or false, got '{}'", key, value));
  return false;
}

QuantType type_of(const std::string& text, const std::string& value) {
  for (const QuantType type : {QuantType::Full, QuantType::Weight, QuantType::Dynamic}) {
    if (Value<QuantType>::print(type) == value) return type;
  }
  refuse(text, format("type takes full, weight or dynamic, got '{}'", value));
}

void set(QuantRule& rule, const std::string& text, const std::string& key,
         const std::string& value) {
  static const Words keys = {"activation_observer",
                             "weight_observer",
                             "activation_bits",
                             "weight_bits",
                             "bits",
                             "per_channel",
                             "skip",
                             "type"};
  if (key == "activation_observer") {
    rule.activation_observer = value;
  } else if (key == "weight_observer") {
    rule.weight_observer = value;
  } else if (key == "activation_bits") {
    rule.activation_bits = bits_of(text, value);
  } else if (key == "weight_bits") {
    rule.weight_bits = bits_of(text, value);
  } else if (key == "bits") {
    rule.activation_bits = rule.weight_bits = bits_of(text, value);
  } else if (key == "per_channel") {
    rule.per_channel = truth_of(text, key, value);
  } else if (key == "skip") {
    rule.skip = truth_of(text, key, value);
  } else if (key == "type") {
    rule.type = type_of(text, value);
  } else {
    refuse(text, format("there is no setting '{}'{}", key, did_you_mean(key, keys)));
  }
}

QuantRule parse_settings(const std::string& text, const std::string& settings) {
  QuantRule rule;
  const Words items = split_names(settings);
  if (items.empty()) refuse(text, "it sets nothing");
  for (const std::string& item : items) {
    const std::size_t equals = item.find('=');
    const std::string value = equals == std::string::npos ? "true" : item.substr(equals + 1);
    const std::string key = item.substr(0, equals);
    if (equals == std::string::npos && key != "skip") {
      refuse(text, format("'{}' is not KEY=VALUE", item));
    }
    set(rule, text, key, value);
  }
  return rule;
}

}  // namespace

void add_rule(const std::string& text, QuantConfig& config) {
  static const Words scopes = {"layer", "name", "type", "global"};
  const std::size_t first = text.find(':');
  // Words may hold ':' themselves: the settings begin behind the last one.
  const std::size_t last = text.rfind(':');
  if (first == std::string::npos) refuse(text, "it has no ':'");
  const std::string scope = text.substr(0, first);
  const QuantRule rule = parse_settings(text, text.substr(last + 1));
  if (scope == "global") {
    if (first != last) refuse(text, "a global rule has no name");
    config.global = rule;
    return;
  }
  const std::string name = first == last ? "" : text.substr(first + 1, last - first - 1);
  if (name.empty()) refuse(text, "it names nothing");
  if (scope == "layer") {
    config.by_layer[name] = rule;
  } else if (scope == "name") {
    config.by_name.emplace_back(name, rule);
  } else if (scope == "type") {
    config.by_type[name] = rule;
  } else {
    refuse(text, format("'{}' is none of layer, name, type, global{}", scope,
                        did_you_mean(scope, scopes)));
  }
}

}  // namespace quench::options
