// SPDX-License-Identifier: Apache-2.0
// Weights for processors without VNNI. There vpmaddubsw adds the products of two neighbours along
// the sum in 16 bits and saturates; weights must be so small that no activation can bring that
// about.
#include <algorithm>
#include <cmath>

#include "lower/params.h"
#include "plan/facts.h"
#include "quench/lower.h"

namespace quench {
namespace lower {
namespace {

constexpr std::int64_t kMost = 32767;
constexpr int kSafeBits = 7;
constexpr int kMaxRounds = 100;

/// Where the weights that one output sums over lie, in the order in which kernels read them.
struct SumOrder {
  std::size_t sums = 0;     ///< rows of weights that are summed over
  std::size_t length = 0;   ///< weights in a sum
  std::size_t inner = 1;    ///< Conv: input channels are innermost, though taps are in the file
  std::size_t columns = 0;  ///< not 0: sums run down the columns of matrices this wide

  std::size_t index(std::size_t sum, std::size_t k) const {
    if (columns != 0) return (sum / columns * length + k) * columns + sum % columns;
    return sum * length + (k % inner) * (length / inner) + k / inner;
  }
};

/// Nothing where the kernel has no 16-bit sums.
std::optional<SumOrder> order_of(const Node& node, const Tensor& weight) {
  const Shape& shape = weight.shape();
  if (shape.size() < 2 || weight.size() == 0) return std::nullopt;
  const auto size = static_cast<std::size_t>(weight.size());
  const auto dim = [&](std::size_t i) { return static_cast<std::size_t>(shape[i]); };
  const auto layout = ops::weight_layout(node, 1, shape);
  const ops::WeightKind kind = ops::facts(node).weight;
  if (layout && kind == ops::WeightKind::Convolution) {
    const bool depthwise = shape[1] == 1 && layout->groups == shape[0];
    if (depthwise) return std::nullopt;  // its kernel has 32-bit sums
    return SumOrder{.sums = dim(0), .length = size / dim(0), .inner = dim(1)};
  }
  if (!layout || kind != ops::WeightKind::Matrix) return std::nullopt;
  if (layout->channel_axis == 0) return SumOrder{.sums = dim(0), .length = dim(1)};
  const std::size_t length = dim(shape.size() - 2);
  return SumOrder{.sums = size / length, .length = length, .columns = dim(shape.size() - 1)};
}

/// For each scale, the greatest magnitude of two neighbours that pull the same way.
std::vector<std::int64_t> greatest_pairs(const Tensor& weight, const QuantParams& params,
                                         const SumOrder& order) {
  const Tensor integers = quantize_tensor(weight, params);
  const auto data = integers.data<std::int8_t>();
  std::vector<std::int64_t> greatest(params.scale.size(), 0);
  for (std::size_t sum = 0; sum < order.sums; ++sum) {
    std::int64_t& most = greatest[sum % greatest.size()];
    std::int64_t last = 0;
    for (std::size_t k = 0; k < order.length; ++k) {
      const std::int64_t next = +data[order.index(sum, k)];
      const std::int64_t up = std::max<std::int64_t>(last, 0) + std::max<std::int64_t>(next, 0);
      const std::int64_t down = std::min<std::int64_t>(last, 0) + std::min<std::int64_t>(next, 0);
      most = std::max({most, up, -down});
      last = next;
    }
  }
  return greatest;
}

/// Steps grown channel by channel, just as far as is needed.
QuantParams grown(const Tensor& weight, QuantParams params, const SumOrder& order,
                  std::int64_t limit) {
  for (int round = 0; round < kMaxRounds; ++round) {
    const auto pairs = greatest_pairs(weight, params, order);
    bool safe = true;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      if (pairs[i] <= limit) continue;
      params.scale[i] *= static_cast<float>(pairs[i]) / static_cast<float>(limit);
      safe = false;
    }
    if (safe) break;
  }
  return params;
}

/// Steps twice as wide, and what does not fit cut off: safe whatever the weights are.
QuantParams halved(QuantParams params) {
  const double wider = std::exp2(params.spec.bits - kSafeBits);
  params.spec.bits = kSafeBits;
  for (float& scale : params.scale) scale = static_cast<float>(scale * wider);
  return params;
}

bool all_safe(const Tensor& weight, const QuantParams& params, const SumOrder& order,
              std::int64_t limit) {
  return std::ranges::max(greatest_pairs(weight, params, order)) <= limit;
}

/// The greatest number that the kernel reads. It reads int8 as uint8, moved up by 128.
std::int64_t greatest_input(const QuantSpec& spec) {
  return spec.is_signed ? spec.q_max() + 128 : spec.q_max();
}

CoarserLayer difference(const std::string& name, const QuantParams& before,
                        const QuantParams& after) {
  CoarserLayer layer{.node = name, .channels = static_cast<std::int64_t>(before.scale.size())};
  for (std::size_t i = 0; i < before.scale.size(); ++i) {
    const double factor =
        static_cast<double>(after.scale[i]) / static_cast<double>(before.scale[i]);
    if (factor > 1) ++layer.changed;
    layer.factor = std::max(layer.factor, factor);
  }
  return layer;
}

}  // namespace
}  // namespace lower

std::vector<CoarserLayer> avoid_saturation(const Model& model, const QuantPlan& plan,
                                           QuantSolution& solution) {
  using namespace lower;
  std::vector<CoarserLayer> changed;
  if (plan.isa != "avx2" && plan.isa != "avx512") return changed;
  const Graph& graph = model.graph;
  for (const WeightPlan& planned : plan.weights) {
    const Node& node = node_called(graph, planned.node);
    const Tensor& weight = *graph.constant(node.inputs[planned.input]);
    QuantParams& params = solution.weights.at(planned.key());
    const auto order = order_of(node, weight);
    if (planned.input != 1 || !order || params.spec.dtype() != DType::Int8) continue;
    const QuantParams& input = value_params(plan, solution, graph[node.inputs[0]].name);
    const std::int64_t limit = kMost / greatest_input(input.spec);
    if (all_safe(weight, params, *order, limit)) continue;
    QuantParams best = halved(params);
    const QuantParams finer = grown(weight, params, *order, limit);
    if (all_safe(weight, finer, *order, limit) &&
        lower::squared_error(weight, finer) <= lower::squared_error(weight, best)) {
      best = finer;
    }
    changed.push_back(difference(plan::key_of(graph, node), params, best));
    params = std::move(best);
  }
  return changed;
}

}  // namespace quench
