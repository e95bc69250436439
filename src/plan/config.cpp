// SPDX-License-Identifier: Apache-2.0
// Which rule holds for a node, and whether every name in a configuration means something.
#include "plan/config.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/format.h"
#include "base/nearest.h"
#include "ops/ops.h"
#include "passes/parallel_layers.h"
#include "plan/facts.h"
#include "plan/target.h"

namespace quench {
namespace plan {
namespace {

constexpr int kMinBits = 2;
constexpr int kMaxBits = 16;

/// Whether `c` is in the set that `pattern` opens with; `length` gets the set's length, or 0 when
/// the bracket is never closed and stands for itself.
bool in_set(std::string_view pattern, char c, std::size_t& length) {
  std::size_t i = 1;
  const bool negated = i < pattern.size() && pattern[i] == '!';
  if (negated) ++i;
  bool found = false;
  for (const std::size_t first = i; i < pattern.size() && (pattern[i] != ']' || i == first); ++i) {
    if (i + 2 < pattern.size() && pattern[i + 1] == '-' && pattern[i + 2] != ']') {
      found = found || (pattern[i] <= c && c <= pattern[i + 2]);
      i += 2;
    } else {
      found = found || pattern[i] == c;
    }
  }
  length = i < pattern.size() ? i + 1 : 0;
  return found != negated;
}

/// Characters of the pattern that match `c` alone; 0: they do not.
std::size_t match_one(std::string_view pattern, char c) {
  if (pattern.empty()) return 0;
  if (pattern[0] == '?') return 1;
  if (pattern[0] == '[') {
    std::size_t length = 0;
    const bool found = in_set(pattern, c, length);
    if (length != 0) return found ? length : 0;
  }
  return pattern[0] == c ? 1 : 0;
}

void expect_known(std::string_view where, const std::string& name,
                  const std::set<std::string>& known) {
  if (known.contains(name)) return;
  const std::vector<std::string> candidates(known.begin(), known.end());
  const std::string meant = did_you_mean(name, candidates);
  fail(ErrorKind::BadConfig, "{} '{}' matches nothing in the model{}", where, name,
       meant.empty()
           ? " that is quantised, in which BatchNormalization, Identity and constants are "
             "folded into the layers around them"
           : meant);
}

void check_bits(std::string_view where, const QuantRule& rule) {
  for (const auto& bits : {rule.activation_bits, rule.weight_bits}) {
    if (bits && (*bits < kMinBits || *bits > kMaxBits)) {
      fail(ErrorKind::BadConfig, "{}: {} bits; expected {} to {}", where, *bits, kMinBits,
           kMaxBits);
    }
  }
}

struct Names {
  std::set<std::string> nodes;
  std::set<std::string> labels;  ///< nodes as reports call them
  std::set<std::string> types;
  std::set<std::string> values;
};

Names names_of(const Graph& graph) {
  Names names;
  for_each_graph(graph, [&](const Graph& each) {
    for (const Node& node : each.nodes) {
      names.nodes.insert(key_of(each, node));
      names.labels.insert(label(each, node));
      names.types.insert(node.op_type);
    }
    for (const Value& value : each.values()) names.values.insert(value.name);
  });
  return names;
}

/// By its own name, or as reports call it: "Conv node 'x'", "unnamed Conv node". Deep models ask
/// this millions of times, so a label is made only where the name may be one.
bool is_called(const Graph& graph, const Node& node, const std::string& name) {
  if (key_of(graph, node) == name) return true;
  return (name.ends_with('\'') || name.ends_with(" node")) && label(graph, node) == name;
}

bool touches(const Graph& graph, const Node& node, const std::string& tensor) {
  const auto is_it = [&](ValueId id) { return id != kNoValue && graph[id].name == tensor; };
  return std::ranges::any_of(node.inputs, is_it) || std::ranges::any_of(node.outputs, is_it);
}

}  // namespace

bool matches_glob(std::string_view pattern, std::string_view text) {
  // The usual walk with one place to return to: the last star.
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t after = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      after = t;
    } else if (const std::size_t length = match_one(pattern.substr(p), text[t]); length != 0) {
      p += length;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++after;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

void check_names(const Graph& graph, const QuantConfig& config) {
  Names names = names_of(graph);
  for (const auto& [layer, rule] : config.by_layer) expect_known("layer", layer, names.nodes);
  for (const auto& [pattern, rule] : config.by_name) {
    const bool matched = std::ranges::any_of(
        names.nodes,
        [&glob = pattern](const std::string& name) { return matches_glob(glob, name); });
    if (!matched) expect_known("name pattern", pattern, names.nodes);
  }
  // A type that the target knows is no slip of the pen, even where this model has none.
  const TargetInfo& target = find_target(config.target);
  for (const ops::OpInfo& op : ops::all_ops()) {
    if (op.domain.empty() && find_op(target, op.name) != nullptr) names.types.emplace(op.name);
  }
  for (const auto& [type, rule] : config.by_type) expect_known("operator type", type, names.types);
  for (const std::string& type : config.quantizable_op_type) {
    expect_known("operator type to quantise", type, names.types);
  }
  // A list takes what the tables of a report show: names of layers, weights and values.
  std::set<std::string> all = names.nodes;
  all.insert(names.values.begin(), names.values.end());
  all.insert(names.labels.begin(), names.labels.end());
  for (const std::string& name : config.skip_quant_node) {
    expect_known("skip_quant_node", name, all);
  }
  for (const std::string& name : config.skip_tensor_list) {
    expect_known("skip_tensor_list", name, all);
  }
  for (const auto& [name, observer] : config.value_observers) {
    expect_known("value_observers", name, names.values);
  }
}

void check_settings(const QuantConfig& config) {
  constexpr std::array<std::string_view, 4> kSets = {"", "avx2", "avx512", "vnni"};
  if (std::ranges::find(kSets, config.isa) == kSets.end()) {
    fail(ErrorKind::BadConfig, "isa is '{}'; expected avx2, avx512 or vnni", config.isa);
  }
  check_bits("the global rule", config.global);
  for (const auto& [name, rule] : config.by_layer) check_bits(name, rule);
  for (const auto& [name, rule] : config.by_name) check_bits(name, rule);
  for (const auto& [name, rule] : config.by_type) check_bits(name, rule);
}

std::string named_reason(const Graph& graph, const Node& node, const QuantConfig& config) {
  // Each list looks for its own kind of name first: a node and a value may have the same.
  for (const std::string& name : config.skip_quant_node) {
    if (is_called(graph, node, name)) return "skip_quant_node lists it";
    const auto is_meant = [&](const Node& other) { return is_called(graph, other, name); };
    if (touches(graph, node, name) && std::ranges::none_of(graph.nodes, is_meant)) {
      return format("skip_quant_node lists '{}', which it reads or makes", name);
    }
  }
  for (const std::string& name : config.skip_tensor_list) {
    if (touches(graph, node, name)) {
      return format("skip_tensor_list lists '{}', which it reads or makes", name);
    }
    if (graph.find(name) == kNoValue && is_called(graph, node, name)) {
      return "skip_tensor_list lists it";
    }
  }
  const bool ruled_out = config.rule_for(key_of(graph, node), node.op_type).skip;
  return ruled_out ? "a rule of the configuration skips it" : "";
}

std::string skip_reason(const Graph& graph, const Node& node, const QuantConfig& config) {
  if (std::string reason = named_reason(graph, node, config); !reason.empty()) return reason;
  const auto& types = config.quantizable_op_type;
  if (!types.empty() && std::ranges::find(types, node.op_type) == types.end()) {
    return format("{} is not among the operator types to quantise", node.op_type);
  }
  return "";
}

}  // namespace plan

namespace {

template <typename T>
void fill(std::optional<T>& setting, const std::optional<T>& wider) {
  if (!setting) setting = wider;
}

void fill(QuantRule& rule, const QuantRule& wider) {
  fill(rule.activation_observer, wider.activation_observer);
  fill(rule.weight_observer, wider.weight_observer);
  fill(rule.activation_bits, wider.activation_bits);
  fill(rule.weight_bits, wider.weight_bits);
  fill(rule.per_channel, wider.per_channel);
  fill(rule.type, wider.type);
}

}  // namespace

namespace plan {
namespace {

constexpr std::array<const char*, 2> kSplitLayers = {passes::kColumnParallel, passes::kRowParallel};

/// A layer's rule: what names it, filled up by what names its kind.
void add_kind_rule(const std::string& layer, const QuantRule& of_kind, QuantConfig& config) {
  const auto named = std::ranges::find_if(
      config.by_name, [&](const auto& each) { return matches_glob(each.first, layer); });
  auto own = config.by_layer.find(layer);
  if (own == config.by_layer.end()) {
    own = config.by_layer.emplace(layer, named == config.by_name.end() ? of_kind : named->second)
              .first;
  }
  if (named != config.by_name.end()) fill(own->second, named->second);
  fill(own->second, of_kind);
}

}  // namespace

QuantConfig by_operators(const Graph& graph, const QuantConfig& given) {
  QuantConfig config = given;
  std::vector<std::string>& types = config.quantizable_op_type;
  const std::set<std::string> before(types.begin(), types.end());
  bool lists = false;
  for (const char* kind : kSplitLayers) {
    lists = std::erase(types, kind) > 0 || lists;
    config.by_type.erase(kind);
  }
  if (lists) {
    for (const ops::OpInfo& op : ops::all_ops()) {
      if (op.facts.weight == ops::WeightKind::Matrix) types.emplace_back(op.name);
    }
  }
  const passes::ParallelLayers parallel(graph);
  for (const Node& node : graph.nodes) {
    const std::string& kind = parallel.kind(node);
    const std::string key = key_of(graph, node);
    const auto rule = kind.empty() ? given.by_type.end() : given.by_type.find(kind);
    if (rule != given.by_type.end()) add_kind_rule(key, rule->second, config);
    const bool product = ops::facts(node).weight == ops::WeightKind::Matrix;
    if (lists && product && !before.contains(kind) && !before.contains(node.op_type)) {
      config.by_layer[key].skip = true;  // only here because others of its operator are listed
    }
  }
  return config;
}

}  // namespace plan

QuantRule QuantConfig::rule_for(const std::string& node_name, const std::string& op_type) const {
  std::vector<const QuantRule*> rules;  // the most specific first
  if (const auto layer = by_layer.find(node_name); layer != by_layer.end()) {
    rules.push_back(&layer->second);
  }
  const auto named = std::ranges::find_if(
      by_name, [&](const auto& each) { return plan::matches_glob(each.first, node_name); });
  if (named != by_name.end()) rules.push_back(&named->second);
  if (const auto type = by_type.find(op_type); type != by_type.end()) {
    rules.push_back(&type->second);
  }
  rules.push_back(&global);
  QuantRule merged = *rules.front();
  for (const QuantRule* wider : rules) fill(merged, *wider);
  return merged;
}

bool QuantConfig::mixes_types() const {
  const auto other = [](const QuantRule& rule) {
    return rule.type && *rule.type != QuantType::Full;
  };
  const auto names_type = [&](const auto& entry) { return other(entry.second); };
  return other(global) || std::ranges::any_of(by_layer, names_type) ||
         std::ranges::any_of(by_name, names_type) || std::ranges::any_of(by_type, names_type);
}

}  // namespace quench
