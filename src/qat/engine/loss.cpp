// SPDX-License-Identifier: Apache-2.0
// Losses.
#include "qat/engine/loss.h"

#include "base/format.h"
#include "exec/engine/values.h"

namespace quench::qat {
namespace {

constexpr double kTiny = 1e-12;

/// Squared error in units of the target's own spread: outputs of any size weigh alike.
at::Tensor relative_error(const at::Tensor& got, const at::Tensor& target) {
  const at::Tensor spread = at::var(target, /*unbiased=*/false) + kTiny;
  return at::mse_loss(got, target) / spread;
}

/// Rows of scores of classes.
bool are_scores(const at::Tensor& output) { return output.dim() == 2 && output.size(1) > 1; }

bool is_softmax(const Graph& graph, const Uses& uses, ValueId id) {
  const NodeId maker = uses.producer[static_cast<std::size_t>(id)];
  return maker >= 0 && graph.nodes[static_cast<std::size_t>(maker)].op_type == "Softmax";
}

}  // namespace

Loss::Loss(const Request& request, double features)
    : by_labels_(request.by_labels), features_(features) {
  const Graph& graph = request.teacher.graph;
  const Uses uses(graph);
  for (const ValueId id : graph.outputs) {
    if (graph[id].type.dtype != DType::Float32) continue;
    wanted_.push_back(graph[id].name);
    are_shares_.push_back(is_softmax(graph, uses, id));
    if (by_labels_) break;  // the first output is scored
  }
  outputs_ = wanted_.size();
  if (wanted_.empty())
    fail(ErrorKind::Unsupported, "the model has no output of floats to train by");
  if (by_labels_) return;
  if (features > 0) {
    for (const auto& [name, node] : request.plan.nodes) {
      const std::string value = request.plan.result_of(name);
      const bool integer = node.kind == NodePlan::Kind::Integer && node.absorbed_by.empty();
      if (integer && graph.find(value) != kNoValue) wanted_.push_back(value);
    }
  }
  const auto taps = wanted_.begin() + static_cast<std::ptrdiff_t>(outputs_);
  teacher_ = std::make_unique<Session>(
      request.teacher, SessionOptions{.taps = {taps, wanted_.end()}}, request.context);
}

at::Tensor Loss::by_labels(const TrainingBatch& batch, const at::Tensor& output) const {
  const at::Tensor scores = output.flatten(1);
  const at::Tensor labels = batch.labels.to(scores.device());
  const auto least = batch.labels.min().item<std::int64_t>();
  const auto most = batch.labels.max().item<std::int64_t>();
  if (least < 0 || most >= scores.size(1)) {
    fail(ErrorKind::BadData, "label {} is out of range: the model's output '{}' has {} classes",
         least < 0 ? least : most, wanted_[0], scores.size(1));
  }
  if (are_shares_[0]) return at::nll_loss(at::log(scores + kTiny), labels);
  return at::cross_entropy_loss(scores, labels);
}

at::Tensor Loss::by_teacher(const TrainingBatch& batch, const std::vector<at::Tensor>& got) {
  const EngineValues targets = teacher_->compute(teacher_->enter(batch.inputs), wanted_);
  at::Tensor sum = at::zeros({});
  for (std::size_t i = 0; i < got.size(); ++i) {
    const at::Tensor target =
        exec::tensor_of(targets.at(wanted_[i])).to(got[i].options(), false, /*copy=*/true);
    if (i >= outputs_) {
      const double share = features_ / static_cast<double>(got.size() - outputs_);
      sum = sum + relative_error(got[i], target) * share;
    } else if (are_scores(target)) {
      const at::Tensor wanted = are_shares_[i] ? target : at::softmax(target, 1);
      const at::Tensor shares =
          are_shares_[i] ? at::log(got[i] + kTiny) : at::log_softmax(got[i], 1);
      const at::Tensor divergence = (wanted * (at::log(wanted + kTiny) - shares)).sum(1).mean();
      sum = sum + divergence + (are_shares_[i] ? at::zeros({}) : relative_error(got[i], target));
    } else {
      sum = sum + relative_error(got[i], target);
    }
  }
  return sum;
}

at::Tensor Loss::of(const TrainingBatch& batch, const std::vector<at::Tensor>& got) {
  return by_labels_ ? by_labels(batch, got[0]) : by_teacher(batch, got);
}

}  // namespace quench::qat
