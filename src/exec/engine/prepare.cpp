// SPDX-License-Identifier: Apache-2.0
// The order in which a model is made ready to compile.
#include "exec/engine/prepare.h"

#include <algorithm>
#include <array>

#include "exec/engine/expand_weights.h"
#include "exec/engine/keep_packed.h"
#include "exec/rewrites/rewrite.h"
#include "ops/facts.h"

namespace quench::exec {
namespace {

using Names = std::span<const std::string_view>;

constexpr std::array<std::string_view, 3> kTidy = {"inline_functions", "lift_constants",
                                                   "remove_identity"};
constexpr std::array<std::string_view, 1> kNarrow = {"drop_channels"};
constexpr std::array<std::string_view, 2> kInteger = {"fuse_patterns", "fuse_integer"};
constexpr std::array<std::string_view, 4> kFuse = {"fold_batchnorm", "fuse_patterns",
                                                   "fuse_attention", "fuse_kernels"};

/// Joins layers with what follows them, which a GPU does in one pass; the rest are CPU kernels.
constexpr std::array<std::string_view, 2> kFuseAway = {"fold_batchnorm", "fuse_kernels"};

passes::PassOptions pass_options(const Graph& graph, const SessionOptions& options) {
  passes::PassOptions result;
  result.keep.insert(options.taps.begin(), options.taps.end());
  if (options.tap_all) {
    for (const Value& value : graph.values()) result.keep.insert(value.name);
  }
  // A tap must be a value of the model, or the user has mistyped it.
  for (const std::string& tap : options.taps) {
    if (graph.find(tap) == kNoValue) {
      fail(ErrorKind::BadData, "the model has no value '{}' to tap", tap);
    }
  }
  return result;
}

bool is_dequantised(const Graph& graph, const Uses& uses, ValueId id) {
  const NodeId maker = id == kNoValue ? -1 : uses.producer[static_cast<std::size_t>(id)];
  return maker >= 0 && graph.nodes[static_cast<std::size_t>(maker)].op_type == "DequantizeLinear";
}

/// Tells the kernels of convolutions; see exec/rewrites/integer.h.
void round_twice(Graph& graph) {
  bool any = false;
  for (Node& node : graph.nodes) {
    if (node.domain != kEngineDomain || !node.op_type.starts_with("QLinearConv")) continue;
    node.set("rounds_twice", std::int64_t{1});
    any = true;
  }
  if (any) return;
  fail(ErrorKind::Usage,
       "no convolution of the model runs on integers between Q/DQ nodes, so that rounding twice "
       "changes nothing; leave it out");
}

}  // namespace

std::vector<std::string> integer_layers(const Graph& graph) {
  static constexpr std::array<std::string_view, 5> kIntegers = {
      "QLinearConv", "QLinearMatMul", "ConvInteger", "MatMulInteger", "QGemm"};
  const Uses uses(graph);
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) {
    const bool integer = std::ranges::find(kIntegers, node.op_type) != kIntegers.end();
    const bool between = ops::is_layer(node) && is_dequantised(graph, uses, node.input(0)) &&
                         is_dequantised(graph, uses, node.input(1));
    if (integer || between) names.push_back(label(graph, node));
  }
  return names;
}

Graph prepare(Model model, const SessionOptions& options, CompileOptions& compile) {
  const passes::PassOptions keep = pass_options(model.graph, options);
  rewrites::run(model, Names(kTidy), keep);
  compile.notes = infer_types(model);
  const bool fuse = compile.fast && !options.tap_all;
  const bool twice = options.rounding == Rounding::Twice;
  const bool integer = fuse && options.integer && (compile.byte_products || twice);
  compile.among_bytes = integer && !integer_layers(model.graph).empty();
  if (integer) rewrites::run(model, Names(kNarrow), keep);
  if (options.dequantize == Dequantize::OnTheFly) keep_packed(model.graph, keep);
  expand_weights(model.graph, keep);
  compile.opsets = model.opsets;
  CompileOptions folding = compile;
  folding.place = {};
  fold_constants(model.graph, folding);
  if (fuse) {
    infer_types(model);
    const std::string batch = batch_of_samples(model.graph);
    if (integer) rewrites::run(model, Names(kInteger), keep);
    rewrites::run(model, Names(kFuse), keep);
    infer_types(model);
    compile.samplewise = !batch.empty();
    if (!batch.empty()) compile.sample_bytes = bytes_of_sample(model.graph, batch);
  } else if (compile.place.away()) {
    infer_types(model);
    // Asked before fusion: nobody knows of fused nodes whether samples meet in them.
    compile.samplewise = !batch_of_samples(model.graph).empty();
    if (!options.tap_all && !options.reference) rewrites::run(model, Names(kFuseAway), keep);
    infer_types(model);
  }
  if (twice) round_twice(model.graph);
  return std::move(model.graph);
}

}  // namespace quench::exec
