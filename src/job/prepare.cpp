// SPDX-License-Identifier: Apache-2.0
// The graph as plans, statistics and the written file see it: one graph for all of them.
#include <algorithm>
#include <array>
#include <set>

#include "base/format.h"
#include "base/nearest.h"
#include "base/share.h"
#include "formats/disk_bytes.h"
#include "formats/fingerprint.h"
#include "formats/registry.h"
#include "job/job.h"
#include "lower/fold_weights.h"
#include "passes/run.h"
#include "plan/facts.h"
#include "quench/formats.h"
#include "quench/ranks.h"

namespace quench {
namespace {

/// The least that every target needs: DequantizeLinear with an axis.
constexpr std::int64_t kLeastOpset = 13;

const Node& named(const Graph& graph, const std::string& name) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) {
    names.push_back(plan::key_of(graph, node));
    if (names.back() == name) return node;
  }
  fail(ErrorKind::BadConfig, "fuse_list names '{}', but no node is called that{}", name,
       did_you_mean(name, names));
}

/// The values that must survive so that only the listed chains are folded.
passes::PassOptions only_listed(const Graph& graph, const FuseOptions& fuse) {
  passes::PassOptions options;
  std::set<std::string> first;
  for (const auto& chain : fuse.fuse_list) {
    for (std::size_t i = 0; i < chain.size(); ++i) {
      const Node& node = named(graph, chain[i]);
      if (i == 0) first.insert(chain[i]);
      const bool linked =
          i == 0 || std::ranges::count(node.inputs, named(graph, chain[i - 1]).outputs[0]) != 0;
      if (!linked) {
        fail(ErrorKind::BadConfig, "fuse_list: '{}' does not read what '{}' makes", chain[i],
             chain[i - 1]);
      }
      if (i + 1 == chain.size()) options.keep.insert(graph[node.outputs[0]].name);
    }
  }
  for (const Node& node : graph.nodes) {
    if (!plan::is_layer(node) || first.contains(plan::key_of(graph, node))) continue;
    options.keep.insert(graph[node.outputs[0]].name);
  }
  return options;
}

void fold(Model& model, const FuseOptions& fuse) {
  constexpr std::array<std::string_view, 1> kFold = {"fold_batchnorm"};
  if (!fuse.fuse) return;
  const bool all = fuse.fuse_list.empty();
  passes::run(model, kFold, all ? passes::PassOptions{} : only_listed(model.graph, fuse));
}

}  // namespace

Model prepare_for_quantization(Model model, const FuseOptions& fuse) {
  constexpr std::array<std::string_view, 4> kTidy = {"inline_functions", "lift_constants",
                                                     "remove_identity", "fold_casts"};
  constexpr std::array<std::string_view, 2> kForms = {"join_hard_gates", "matmul_to_gemm"};
  infer_types(model);
  passes::run(model, kTidy, {});
  infer_types(model);
  // An integer layer wants its weight as it lies: a table that is read by row too is kept beside
  // it.
  fold_weights(model, SharedTables::Copied);
  // Before anything is planned: nodes that lifting adds must be part of the plan.
  lift_opset(model, kLeastOpset);
  infer_types(model);
  fold(model, fuse);
  passes::run(model, kForms, {});
  infer_types(model);
  return model;
}

namespace job {
namespace {

/// Functions inlined, constants lifted, weights that are computed from constants folded, the rest
/// untouched. A transposed table that is read by row too becomes one constant for both readers in a
/// weight-only model; a dynamic product wants its integers as they lie.
Model prepare_weights(Model model, QuantType type) {
  constexpr std::array<std::string_view, 2> kPasses = {"inline_functions", "lift_constants"};
  passes::run(model, kPasses, {});
  infer_types(model);
  fold_weights(model, type == QuantType::Dynamic ? SharedTables::Copied : SharedTables::Kept);
  return model;
}

}  // namespace

Model prepare_for(Model model, QuantType type) {
  const bool stored = type == QuantType::Weight || type == QuantType::Dynamic;
  return stored ? prepare_weights(std::move(model), type)
                : prepare_for_quantization(std::move(model));
}

void infer_and_warn(Model& model, const Context& context) {
  for (const std::string& note : infer_types(model)) context.warn(note);
}

void expect_out_fits(const Job& job) {
  if (job.out_path.empty()) return;
  const std::string runtime = target_of_output(job.out_path);
  if (runtime.empty()) return;
  const TargetInfo& wanted = find_target(runtime);
  const TargetInfo& target = find_target(job.options.config.target);
  const bool fits =
      !wanted.activation_symmetric || (target.activation_symmetric && target.activation_signed);
  if (job.is_full() && !fits) {
    fail(ErrorKind::Usage,
         "'{}' can only hold symmetric signed scales, and target '{}' has others; take target "
         "'{}', or write ONNX",
         job.out_path, target.name, runtime);
  }
  expect_writable(job.model, job.out_path);
}

void prepare(Job& job) {
  Model read = load(job.model_path);
  job.report.warnings = job.options.notes;
  job.report.bytes_before = bytes_on_disk(job.model_path, read);
  job.origin = fingerprint(read);
  if (Ranks* ranks = sharers(job.context)) {
    ranks->agree("the model", job.origin);
    ranks->agree("what is asked for", settings_json(job.options));
  }
  set_input_shapes(read, job.options.input_shapes);
  infer_and_warn(read, job.context);
  if (job.is_full()) job.original = read;
  job.model = prepare_for(std::move(read), job.options.type);
  expect_out_fits(job);
}

}  // namespace job
}  // namespace quench
