// SPDX-License-Identifier: Apache-2.0
// Matrix products on integers: MatMul and Gemm, with integer or float results.
#include "lower/qoperator.h"

namespace quench::lower {
namespace {

/// Columns may have a scale each only in a matrix.
bool columns_or_whole(const QSite& site, const QTensor& b, int columns) {
  if (b.axis < 0) return true;
  const auto& shape = site.graph[b.integers].type.shape;
  return shape && shape->size() == 2 && b.axis == columns;
}

}  // namespace

std::optional<Node> qlinear_matmul(const QSite& site) {
  const QTensor& a = *site.inputs[0];
  const QTensor& b = *site.inputs[1];
  if (!columns_or_whole(site, b, 1)) return std::nullopt;
  if (site.output) {
    Node node = site.as("QLinearMatMul", "");
    append(node.inputs, a);
    append(node.inputs, b);
    append_params(node.inputs, *site.output);
    return node;
  }
  Node node = site.as("MatMulIntegerToFloat", kMicrosoft);
  node.inputs = {a.integers, b.integers, a.scale, b.scale, a.zero_point, b.zero_point};
  return node;
}

std::optional<Node> qgemm(const QSite& site) {
  const bool by_rows = site.node.get_int("transB", 0) != 0;
  const auto& bias = site.bias;
  if (!bias || !columns_or_whole(site, *site.inputs[1], by_rows ? 0 : 1)) return std::nullopt;
  const bool plain =
      site.node.get_float("alpha", 1) == 1.0F && site.node.get_float("beta", 1) == 1.0F;
  if (*bias != kNoValue && !plain) return std::nullopt;
  Node node = site.as("QGemm", kMicrosoft);
  node.erase("beta");
  append(node.inputs, *site.inputs[0]);
  append(node.inputs, *site.inputs[1]);
  if (*bias != kNoValue || site.output) node.inputs.push_back(*bias);
  if (site.output) append_params(node.inputs, *site.output);
  return node;
}

}  // namespace quench::lower
