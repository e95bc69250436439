// SPDX-License-Identifier: Apache-2.0
// From statistics to scales.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "base/nearest.h"
#include "base/parallel.h"
#include "calibrate/collect.h"
#include "calibrate/shards.h"

namespace quench::calibrate {
namespace {

/// A user's own observer may return anything.
Range checked(const Range& range, const std::string& observer, const std::string& value) {
  if (std::isfinite(range.min) && std::isfinite(range.max) && range.min <= range.max) return range;
  fail(
      ErrorKind::BadConfig,
      "the custom observer '{}' gave the range [{}, {}] for '{}'; expected two finite numbers, the "
      "smaller first",
      observer, range.min, range.max, value);
}

Range observed_range(const std::string& name, const QuantSpec& spec, const Statistic& statistic,
                     const CustomObservers& custom) {
  const auto own = custom.find(spec.observer);
  if (own != custom.end()) return checked(own->second(statistic, spec), spec.observer, name);
  return find_observer(spec.observer).range(statistic, spec);
}

QuantParams solve_value(const std::string& name, const ValuePlan& plan,
                        const StatisticMap& statistics, const CustomObservers& custom) {
  if (plan.kind == ValuePlan::Kind::Fixed) return choose_params(plan.spec, {plan.fixed});
  const auto found = statistics.find(name);
  if (found == statistics.end()) {
    fail(ErrorKind::BadData,
         "there are no statistics of '{}'; calibrate this model again, with the --target it is "
         "quantised for",
         name);
  }
  return choose_params(plan.spec, {observed_range(name, plan.spec, found->second, custom)});
}

bool is_auto(const ValuePlan& value) {
  if (value.kind != ValuePlan::Kind::Observed) return false;
  return value.spec.observer == "auto" || value.spec.observer == "best";
}

}  // namespace

bool wants_held_out(const QuantPlan& plan) {
  return std::ranges::any_of(plan.values, [](const auto& each) { return is_auto(each.second); });
}

QuantPlan choose_observers(QuantPlan plan, const StatisticMap& seen, const StatisticMap& held_out) {
  for (auto& [name, value] : plan.values) {
    const auto first = seen.find(name);
    const auto second = held_out.find(name);
    if (!is_auto(value) || first == seen.end() || second == held_out.end()) continue;
    value.spec.observer = best_observer(first->second, second->second, value.spec).observer;
  }
  return plan;
}

void check_observers(const QuantPlan& plan, const CustomObservers& custom) {
  std::vector<std::string> own;
  for (const auto& [name, observer] : custom) {
    if (!observer)
      fail(ErrorKind::BadConfig, "the custom observer '{}' is an empty function", name);
    own.push_back(name);
  }
  for (const auto& [name, value] : plan.values) {
    if (value.kind != ValuePlan::Kind::Observed || custom.contains(value.spec.observer)) continue;
    try {
      find_observer(value.spec.observer);
    } catch (const Error& error) {
      const std::string hint = did_you_mean(value.spec.observer, own);
      if (hint.empty()) throw;
      fail(error.kind(), "there is no observer '{}'{}", value.spec.observer, hint);
    }
  }
  // Weights need no data: a tensor of one element brings out a name that means nothing.
  for (const WeightPlan& weight : plan.weights) {
    QuantSpec spec = weight.spec;
    spec.axis = -1;
    (void)weight_ranges(Tensor::of<float>({1}, {1}), spec);
  }
}

namespace {

/// The scales that need nothing but their own statistics or weights, found on several threads. A
/// user's own observer is asked on this thread alone.
class Solver {
 public:
  Solver(const Model& model, const QuantPlan& plan, const StatisticMap& statistics,
         const CustomObservers& custom)
      : model_(model), plan_(plan), statistics_(statistics), custom_(custom) {}

  void values(int threads, QuantSolution& solution) const {
    std::vector<const std::pair<const std::string, ValuePlan>*> open;
    for (const auto& each : plan_.values) {
      const ValuePlan& value = each.second;
      const bool observed = value.kind == ValuePlan::Kind::Observed;
      if (!observed && value.kind != ValuePlan::Kind::Fixed) continue;
      if (observed && custom_.contains(value.spec.observer)) {
        solution.values[each.first] = solve_value(each.first, value, statistics_, custom_);
      } else {
        open.push_back(&each);
      }
    }
    std::vector<QuantParams> found(open.size());
    each_of(open.size(), threads, [&](std::size_t i) {
      found[i] = solve_value(open[i]->first, open[i]->second, statistics_, custom_);
    });
    for (std::size_t i = 0; i < open.size(); ++i) {
      solution.values[open[i]->first] = std::move(found[i]);
    }
  }

  void weights(int threads, Ranks* shards, QuantSolution& solution) const {
    std::vector<QuantParams> found(plan_.weights.size());
    std::vector<bool> done(found.size(), false);
    if (shards != nullptr) {
      const SplitWeights split(model_, plan_);
      for (std::size_t i = 0; i < found.size(); ++i) {
        done[i] = split.shared(i);
        if (done[i]) found[i] = params_of(split.whole(*shards, i), plan_.weights[i], threads);
      }
    }
    // Where there are fewer weights than threads, each gets its share of them.
    const int share = threads / std::max(1, static_cast<int>(found.size()));
    each_of(found.size(), threads, [&](std::size_t i) {
      if (!done[i]) found[i] = solve_weight(plan_.weights[i], std::max(1, share));
    });
    for (std::size_t i = 0; i < found.size(); ++i) {
      solution.weights[plan_.weights[i].key()] = std::move(found[i]);
    }
  }

 private:
  template <typename Body>
  static void each_of(std::size_t count, int threads, const Body& body) {
    // Neighbours differ less in cost than the ends of a network: they are dealt out in turn.
    const auto parts = static_cast<std::size_t>(std::max(1, threads));
    parallel_for(static_cast<std::int64_t>(parts), threads,
                 [&](std::int64_t begin, std::int64_t end) {
                   for (auto part = static_cast<std::size_t>(begin);
                        part < static_cast<std::size_t>(end); ++part) {
                     for (std::size_t i = part; i < count; i += parts) body(i);
                   }
                 });
  }

  QuantParams solve_weight(const WeightPlan& weight, int threads) const {
    const Node& node = node_called(model_.graph, weight.node);
    const Tensor* tensor = model_.graph.constant(node.input(weight.input));
    if (tensor == nullptr) {
      fail(ErrorKind::Internal, "input {} of the {} is not a constant", weight.input,
           label(model_.graph, node));
    }
    return params_of(*tensor, weight, threads);
  }

  static QuantParams params_of(const Tensor& tensor, const WeightPlan& weight, int threads) {
    return choose_params(weight.spec, weight_ranges(tensor, weight.spec, threads));
  }

  const Model& model_;
  const QuantPlan& plan_;
  const StatisticMap& statistics_;
  const CustomObservers& custom_;
};

/// The value at the end of a chain of shared scales.
std::string shared_source(const QuantPlan& plan, const ValuePlan& value) {
  std::string source = value.source;
  // Chains are short: each link leads to a value nearer to the one that was observed.
  for (std::size_t hops = 0; hops <= plan.values.size(); ++hops) {
    const auto next = plan.values.find(source);
    if (next == plan.values.end() || next->second.kind != ValuePlan::Kind::SharedWith) break;
    source = next->second.source;
  }
  return source;
}

}  // namespace

std::vector<std::string> observed_values(const QuantPlan& plan) {
  std::vector<std::string> names;
  for (const auto& [name, value] : plan.values) {
    if (value.kind == ValuePlan::Kind::Observed) names.push_back(name);
  }
  return names;
}

void share_params(const QuantPlan& plan, QuantSolution& solution) {
  for (const auto& [name, value] : plan.values) {
    if (value.kind != ValuePlan::Kind::SharedWith) continue;
    const std::string source = shared_source(plan, value);
    const auto found = solution.values.find(source);
    if (found == solution.values.end()) {
      fail(ErrorKind::Internal, "'{}' shares the scale of '{}', which has none", name, source);
    }
    solution.values[name] = found->second;
  }
}

QuantSolution solve(const Model& model, const QuantPlan& plan, const StatisticMap& statistics,
                    const CustomObservers& custom, int threads, Ranks* shards) {
  QuantSolution solution;
  const Solver solver(model, plan, statistics, custom);
  solver.values(threads, solution);
  solver.weights(threads, shards, solution);
  share_params(plan, solution);
  return solution;
}

}  // namespace quench::calibrate
