// SPDX-License-Identifier: Apache-2.0
// A network with a depthwise convolution, gates and channels of its own number.
#pragma once

#include "unit/tune/networks.h"

namespace quench::testing {

/// x -> conv "a" (2 channels to `count`) -> hard-swish -> depthwise "d" -> gated by its own means
/// -> "out".
struct Mobile : Network {
  explicit Mobile(std::int64_t group = 3, std::int64_t count = 3) {
    filled("a_w", {count, 2, 1, 1}, 0.9F);
    filled("a_b", {count}, 0.5F);
    node("Conv", {"x", "a_w", "a_b"}, {"a"}).name = "conv_a";
    node("HardSigmoid", {"a"}, {"gate"}).set("alpha", 1.0F / 6);
    then("Mul", {"a", "gate"}, "m");
    filled("d_w", {count, count / group, 3, 3}, 0.4F);
    filled("d_b", {count}, 0.3F);
    Node& depthwise = node("Conv", {"m", "d_w", "d_b"}, {"d"});
    depthwise.name = "conv_d";
    depthwise.set("group", group);
    depthwise.set("pads", std::vector<std::int64_t>{1, 1, 1, 1});
    then("GlobalAveragePool", {"d"}, "mean");
    filled("e_w", {count, count, 1, 1}, 0.7F);
    node("Conv", {"mean", "e_w"}, {"e"}).name = "conv_e";
    then("Sigmoid", {"e"}, "s").then("Mul", {"d", "s"}, "weighed");
    filled("out_w", {2, count, 1, 1}, 0.8F);
  }
  Mobile& finish() {
    node("Conv", {"weighed", "out_w"}, {"out"}).name = "conv_out";
    output("out");
    infer_types(model);
    return *this;
  }
  void filled(const std::string& name, const Shape& shape, float scale) {
    std::vector<float> values(static_cast<std::size_t>(*num_elements(shape)));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = scale * std::cos(static_cast<float>(5 * i + 2));
    }
    numbers(name, shape, values);
  }
  Model lowered(const QuantConfig& config = {}) const {
    const QuantPlan plan = make_plan(model, config);
    return insert_qdq(model, plan, solved(model, plan, {batch(0), batch(1), batch(2)}));
  }
};

inline std::int64_t channels(const Model& model, const std::string& value) {
  const ValueId id = model.graph.find(value);
  return id == kNoValue ? -1 : (*model.graph[id].type.shape)[1].value;
}

}  // namespace quench::testing
