// SPDX-License-Identifier: Apache-2.0
// Between a job and what is learned by gradients.
#include "tune/learned.h"

#include <algorithm>

#include "base/format.h"
#include "formats/fingerprint.h"
#include "quench/lower.h"

namespace quench::tune {
namespace {

constexpr std::int64_t kRun = 32;  ///< samples that are validated at once

/// Normalisation of the model as it was read that is part of a layer now.
std::vector<qat::FoldedNorm> folded_norms(const Model& original) {
  const Graph& graph = original.graph;
  std::vector<qat::FoldedNorm> norms;
  for (const Node& node : graph.nodes) {
    if (node.op_type != "BatchNormalization" || node.outputs.size() != 1) continue;
    std::vector<std::vector<float>> parts;
    for (std::size_t i = 1; i < 5; ++i) {
      const Tensor* constant = graph.constant(node.input(i));
      if (constant != nullptr) parts.push_back(to_float(*constant));
    }
    if (parts.size() != 4) continue;
    norms.push_back({.layer = output_name(graph, node),
                     .scale = parts[0],
                     .shift = parts[1],
                     .mean = parts[2],
                     .variance = parts[3],
                     .epsilon = static_cast<double>(node.get_float("epsilon", 1e-5F))});
  }
  return norms;
}

bool by_labels(const State& state) {
  const std::string& loss = state.options.training.loss;
  const bool wanted = loss == "labels" || (loss == "auto" && !state.options.data.labels.empty());
  if (wanted && !state.samples.source().has_labels()) {
    fail(ErrorKind::BadData, "'{}' has no labels to train with; give --labels, or --loss distill",
         state.options.data.path);
  }
  return wanted;
}

/// The share of validation samples, in percent, whose label scores highest in the first output.
double top1(const State& state, const Model& model) {
  Session session(model, {}, state.context);
  const std::string output = session.outputs().front().name;
  const evaluation::SampleRange range = state.samples.validation();
  std::int64_t right = 0;
  std::int64_t at = range.first;
  for (const TensorMap& run : state.samples.read(range, kRun)) {
    const std::vector<float> scores = to_float(session.run(run).at(output));
    const std::int64_t rows = run.begin()->second.shape()[0];
    const auto classes = static_cast<std::ptrdiff_t>(scores.size()) / rows;
    for (std::int64_t row = 0; row < rows; ++row, ++at) {
      const auto first = scores.begin() + row * classes;
      const auto best = std::max_element(first, first + classes) - first;
      if (best == state.samples.source().read(at).label) ++right;
    }
  }
  return 100.0 * static_cast<double>(right) /
         static_cast<double>(std::max<std::int64_t>(range.count, 1));
}

}  // namespace

qat::Request learning_request(const State& state) {
  qat::Request request{.teacher = state.model,
                       .start = state.to_quantize(),
                       .plan = state.plan,
                       .solution = state.solution,
                       .options = state.options.training,
                       .norms = folded_norms(state.original),
                       .samples = state.samples,
                       .context = state.context,
                       .by_labels = by_labels(state),
                       .origin = fingerprint(state.model) + settings_json(state.options)};
  if (!state.validation.able()) return request;
  request.score = request.by_labels ? "top1" : "sqnr";
  request.validate = [&state, labels = request.by_labels](const Model& model,
                                                          const QuantSolution& solution) {
    const Model written = insert_qdq(model, state.plan, solution);
    return labels ? top1(state, written) : state.validation.sqnr(written);
  };
  return request;
}

void take_learned(State& state, qat::Result result) {
  state.tuned = std::move(result.model);
  state.solution = std::move(result.solution);
  legalize(*state.tuned, state.plan, state.solution);
  state.report.training = std::move(result.report);
}

}  // namespace quench::tune
