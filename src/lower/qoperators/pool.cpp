// SPDX-License-Identifier: Apache-2.0
// Averages on integers.
#include "lower/qoperator.h"

namespace quench::lower {
namespace {

std::optional<Node> pool(const QSite& site, std::string op_type) {
  if (!site.output) return std::nullopt;
  for (const std::int64_t step : site.node.get_ints("dilations")) {
    if (step != 1) return std::nullopt;
  }
  Node node = site.as(std::move(op_type), kMicrosoft);
  node.erase("dilations");
  append(node.inputs, *site.inputs[0]);
  append_params(node.inputs, *site.output);
  return node;
}

}  // namespace

std::optional<Node> qlinear_average_pool(const QSite& site) {
  return pool(site, "QLinearAveragePool");
}

std::optional<Node> qlinear_global_average_pool(const QSite& site) {
  return pool(site, "QLinearGlobalAveragePool");
}

}  // namespace quench::lower
