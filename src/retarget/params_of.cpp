// SPDX-License-Identifier: Apache-2.0
// Reads scales and zero points off nodes.
#include "retarget/params_of.h"

#include <algorithm>
#include <cmath>

#include "plan/qdq.h"

namespace quench::retargeting {
namespace {

/// The axis as it counts in the tensor; nothing where it is none.
std::optional<int> axis_of(const Graph& graph, const Node& node) {
  std::int64_t axis = node.get_int("axis", 1);
  const auto& shape = graph[node.input(0)].type.shape;
  if (axis < 0 && !shape) return std::nullopt;
  if (axis < 0) axis += std::ssize(*shape);
  constexpr std::int64_t kMost = 64;
  if (axis < 0 || axis > kMost) return std::nullopt;
  return static_cast<int>(axis);
}

DType type_of(const Graph& graph, const Node& node) {
  const auto named = static_cast<DType>(node.get_int("output_dtype", 0));
  const bool tells = plan::is_q(&node) && node.input(2) == kNoValue && named != DType::Undefined;
  return tells ? named : plan::integer_type(graph, node);
}

}  // namespace

std::optional<QuantSpec> spec_of(DType dtype) {
  QuantSpec spec;
  switch (dtype) {
    case DType::Int4:
    case DType::UInt4:
      spec.bits = 4;
      break;
    case DType::Int8:
    case DType::UInt8:
      spec.bits = 8;
      break;
    case DType::Int16:
    case DType::UInt16:
      spec.bits = 16;
      break;
    default:
      return std::nullopt;
  }
  spec.is_signed = dtype == DType::Int4 || dtype == DType::Int8 || dtype == DType::Int16;
  return spec;
}

std::optional<QuantParams> params_of(const Graph& graph, const Node& node) {
  const Tensor* scale = graph.constant(node.input(1));
  const Tensor* zero = graph.constant(node.input(2));
  if (scale == nullptr || (zero == nullptr && node.input(2) != kNoValue)) return std::nullopt;
  if (node.get_int("block_size", 0) != 0 || scale->rank() > 1 || scale->size() == 0 ||
      (zero != nullptr && zero->size() != scale->size())) {
    return std::nullopt;
  }
  const auto spec = spec_of(type_of(graph, node));
  if (!spec) return std::nullopt;
  QuantParams params{.spec = *spec, .scale = to_float(*scale)};
  const bool sound =
      std::ranges::all_of(params.scale, [](float each) { return std::isfinite(each) && each > 0; });
  if (!sound) return std::nullopt;
  params.zero_point.assign(params.scale.size(), 0);
  if (zero != nullptr) {
    const std::vector<float> steps = to_float(*zero);
    std::ranges::transform(steps, params.zero_point.begin(),
                           [](float each) { return static_cast<std::int32_t>(each); });
  }
  if (params.scale.size() > 1) {
    const auto axis = axis_of(graph, node);
    if (!axis) return std::nullopt;
    params.spec.axis = *axis;
  }
  const std::int32_t middle = spec->is_signed ? 0 : 1 << (spec->bits - 1);
  params.spec.symmetric =
      std::ranges::all_of(params.zero_point, [=](std::int32_t each) { return each == middle; });
  return params;
}

bool same_integers(const QuantParams& a, const QuantParams& b) {
  return a.scale == b.scale && a.zero_point == b.zero_point && a.spec.dtype() == b.spec.dtype();
}

Range range_of(const QuantParams& params) {
  Range range;
  for (std::size_t i = 0; i < params.scale.size(); ++i) {
    const auto scale = static_cast<double>(params.scale[i]);
    const auto number = [&](std::int64_t step) {
      return static_cast<double>(step - params.zero_point[i]) * scale;
    };
    range.min = std::min(range.min, number(params.spec.q_min()));
    range.max = std::max(range.max, number(params.spec.q_max()));
  }
  return range;
}

}  // namespace quench::retargeting
