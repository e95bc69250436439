// SPDX-License-Identifier: Apache-2.0
// Reads quantisation parameters out of nodes.
#include "exec/rewrites/quant_params.h"

#include <algorithm>
#include <cmath>

namespace quench::exec::rewrites {
namespace {

bool is_byte(DType dtype) { return dtype == DType::UInt8 || dtype == DType::Int8; }

bool same_numbers(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.size() == b.size() && std::ranges::equal(a.bytes(), b.bytes());
}

bool all_positive(const Tensor& scale) {
  return std::ranges::all_of(to_doubles(scale),
                             [](double each) { return std::isfinite(each) && each > 0; });
}

/// The type of the integers: the zero point's, or what the node says.
DType integers_of(const Rewriter& rewriter, const Node& node, const Tensor* zero) {
  if (zero != nullptr) return zero->dtype();
  if (node.op_type == "DequantizeLinear") return rewriter.graph()[node.inputs[0]].type.dtype;
  const auto wanted = static_cast<DType>(node.get_int("output_dtype", 0));
  return wanted == DType::Undefined ? DType::UInt8 : wanted;
}

}  // namespace

std::optional<ParamValues> params_of(const Rewriter& rewriter, const Node& node) {
  const Tensor* scale = rewriter.constant(node.input(1));
  const Tensor* zero = rewriter.constant(node.input(2));
  const bool known = scale != nullptr && (zero != nullptr || node.input(2) == kNoValue);
  if (!known || node.get_int("block_size", 0) != 0 || node.input(0) == kNoValue) {
    return std::nullopt;
  }
  ParamValues params{.scale = node.input(1), .zero = node.input(2)};
  params.dtype = integers_of(rewriter, node, zero);
  params.per_tensor = scale->size() == 1;
  params.axis = node.get_int("axis", 1);
  const bool fits = is_byte(params.dtype) && is_real(scale->dtype()) && scale->rank() <= 1 &&
                    scale->size() >= 1 && (zero == nullptr || zero->size() == scale->size());
  if (!fits || !all_positive(*scale)) return std::nullopt;
  return params;
}

std::optional<Quantised> dequantised(const Rewriter& rewriter, ValueId value) {
  const Node* node = rewriter.maker_as(value, "DequantizeLinear");
  if (node == nullptr) return std::nullopt;
  const auto params = params_of(rewriter, *node);
  if (!params) return std::nullopt;
  return Quantised{.value = node->inputs[0], .params = *params};
}

std::optional<Quantised> dequantised_per_tensor(const Rewriter& rewriter, ValueId value) {
  const auto found = dequantised(rewriter, value);
  return found && found->params.per_tensor ? found : std::nullopt;
}

bool same_params(const Rewriter& rewriter, const ParamValues& a, const ParamValues& b) {
  if (a.dtype != b.dtype || a.per_tensor != b.per_tensor) return false;
  if (!a.per_tensor && a.axis != b.axis) return false;
  if (!same_numbers(*rewriter.constant(a.scale), *rewriter.constant(b.scale))) return false;
  if (a.zero == kNoValue || b.zero == kNoValue) {
    if (a.zero == b.zero) return true;
    const Tensor& zero = *rewriter.constant(a.zero == kNoValue ? b.zero : a.zero);
    return std::ranges::all_of(zero.bytes(), [](std::byte each) { return each == std::byte{0}; });
  }
  return same_numbers(*rewriter.constant(a.zero), *rewriter.constant(b.zero));
}

double scale_of(const Rewriter& rewriter, const ParamValues& params) {
  return to_doubles(*rewriter.constant(params.scale)).front();
}

}  // namespace quench::exec::rewrites
