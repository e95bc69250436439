// SPDX-License-Identifier: Apache-2.0
// What the processes of a split model tell each other beside scales.
#include "job/shards.h"

#include <algorithm>

#include "base/format.h"
#include "base/share.h"
#include "formats/fingerprint.h"
#include "ops/facts.h"
#include "passes/parallel_layers.h"

namespace quench::job {
namespace {

std::vector<std::string> texts(Ranks& ranks, std::string_view what, std::string_view own) {
  const auto bytes = std::as_bytes(std::span(own.data(), own.size()));
  std::vector<std::string> all;
  for (const Bytes& each : gather(ranks, what, Bytes(bytes.begin(), bytes.end()))) {
    all.emplace_back(reinterpret_cast<const char*>(each.data()), each.size());
  }
  return all;
}

void expect_own_file(Ranks& ranks, const std::string& out_path) {
  if (out_path.empty()) return;
  const std::vector<std::string> paths = texts(ranks, "outputs", out_path);
  for (std::size_t i = 1; i < paths.size(); ++i) {
    const auto same =
        std::find(paths.begin(), paths.begin() + static_cast<std::ptrdiff_t>(i), paths[i]);
    if (same == paths.begin() + static_cast<std::ptrdiff_t>(i)) continue;
    fail(ErrorKind::Usage,
         "ranks {} and {} would both write '{}'; put {{rank}} into the path, as in "
         "part{{rank}}.onnx",
         same - paths.begin(), i, paths[i]);
  }
}

/// A weight differs between ranks where the graph says that it is split, and only there.
void check_weight(Ranks& ranks, const std::string& layer, const std::string& kind,
                  const Tensor& weight) {
  Fingerprint hash;
  hash.add(weight.bytes());
  for (const std::int64_t size : weight.shape()) hash.add(size);
  const std::vector<std::string> all = texts(ranks, "weights", hash.text());
  const bool same = std::ranges::all_of(all, [&](const auto& each) { return each == all[0]; });
  if (same == kind.empty()) return;
  if (same) {
    fail(ErrorKind::BadModel,
         "the weight of the {} is the same on all ranks, though it is a {}: do all read the same "
         "file?",
         layer, kind);
  }
  fail(ErrorKind::BadModel,
       "the weight of the {} differs between ranks, but nothing tells how it is split: a "
       "row-parallel layer has an AllReduce behind it, a column-parallel one such a layer or an "
       "AllGather",
       layer);
}

}  // namespace

void start_shards(Job& job, const std::string& out_path) {
  Ranks* ranks = shards(job.context);
  if (ranks == nullptr) return;
  if (job.options.type != QuantType::Full && job.options.type != QuantType::None) {
    fail(ErrorKind::Usage,
         "weights alone need nothing of other ranks: quantise each part by itself, without "
         "--tensor-parallel");
  }
  const TrainingOptions& training = job.options.training;
  if (training.any() || training.adaround || training.reconstruct) {
    fail(ErrorKind::Unsupported,
         "what is learned is learned of whole layers here: train a model that is split over ranks "
         "in a loop of your own (quench/qat.h)");
  }
  job.options.bias_correction = false;
  job.options.equalization = Equalization::Never;
  QuantizeOptions same = job.options;
  same.statistics.clear();  // a file each
  ranks->agree("what is asked for", settings_json(same));
  expect_own_file(*ranks, out_path);
}

void check_shards(const Job& job) {
  Ranks* ranks = shards(job.context);
  if (ranks == nullptr) return;
  const Graph& graph = job.model.graph;
  const passes::ParallelLayers parallel(graph);
  std::string layers;
  for (const Node& node : graph.nodes) {
    if (ops::is_layer(node)) layers += label(graph, node) + " " + parallel.kind(node) + "\n";
  }
  ranks->agree("the list of layers", layers);
  if (parallel.empty()) {
    fail(
        ErrorKind::BadModel,
        "'{}' has no layer that is split over ranks: no AllReduce or AllGather of com.microsoft is "
        "behind one; leave out --tensor-parallel",
        job.model_path);
  }
  for (const Node& node : graph.nodes) {
    const Tensor* weight = ops::is_layer(node) ? graph.constant(node.input(1)) : nullptr;
    if (weight == nullptr || ranks->size() == 1) continue;
    check_weight(*ranks, label(graph, node), parallel.kind(node), *weight);
  }
}

void meet_shards(const Job& job) {
  if (Ranks* ranks = shards(job.context)) (void)texts(*ranks, "that all is done", "");
}

}  // namespace quench::job
