// SPDX-License-Identifier: Apache-2.0
// Losses, as exported training graphs hold them.
#include "exec/engine/kernels/common.h"

namespace quench::exec {
namespace {

struct Loss {
  std::string reduction;
  std::optional<std::int64_t> ignored;
};

std::optional<Loss> loss_attributes(const OpContext& context, std::string& refusal) {
  Loss loss{.reduction = context.node.get_string("reduction", "mean"), .ignored = {}};
  if (loss.reduction != "none" && loss.reduction != "sum" && loss.reduction != "mean") {
    refusal = format("reduction '{}' is not known", loss.reduction);
    return std::nullopt;
  }
  const auto* ignored = context.node.get<std::int64_t>("ignore_index");
  if (ignored != nullptr) loss.ignored = *ignored;
  return loss;
}

/// Minus the log probability of each target, weighted; classes lie along axis 1.
at::Tensor log_loss(const at::Tensor& logs, const at::Tensor& given, const at::Tensor& weights,
                    const Loss& loss) {
  const at::Tensor target = given.to(at::kLong);
  const at::Tensor kept = loss.ignored ? target != *loss.ignored : at::ones_like(target, at::kBool);
  const at::Tensor safe = at::where(kept, target, at::zeros_like(target));
  const at::Tensor picked = at::gather(logs, 1, safe.unsqueeze(1)).squeeze(1);
  at::Tensor share = kept.to(logs.scalar_type());
  if (weights.defined()) {
    share = share * weights.index_select(0, safe.reshape({-1})).reshape(safe.sizes());
  }
  const at::Tensor each = -picked * share;
  if (loss.reduction == "none") return each;
  return loss.reduction == "sum" ? each.sum() : each.sum() / share.sum();
}

Kernel make_nll(const OpContext& context) {
  std::string refusal;
  const auto loss = loss_attributes(context, refusal);
  if (!loss) return Kernel::Refusal{refusal};
  return [loss = *loss](Call& call) {
    call.set(0, log_loss(call.in(0), call.in(1), call.in(2), loss));
  };
}

Kernel make_cross_entropy(const OpContext& context) {
  std::string refusal;
  const auto loss = loss_attributes(context, refusal);
  if (!loss) return Kernel::Refusal{refusal};
  return [loss = *loss](Call& call) {
    const at::Tensor logs = at::log_softmax(call.in(0), 1);
    call.set(0, log_loss(logs, call.in(1), call.in(2), loss));
    call.set(1, logs);
  };
}

}  // namespace

KernelInfo kernel_NegativeLogLikelihoodLoss() { return {.since = 12, .make = make_nll}; }
KernelInfo kernel_SoftmaxCrossEntropyLoss() { return {.since = 12, .make = make_cross_entropy}; }

}  // namespace quench::exec
