// SPDX-License-Identifier: Apache-2.0
// One sum a step over all that ranks must share, laid out behind each other.
#include "qat/engine/rank_sums.h"

#include "exec/engine/ranks.h"

namespace quench::qat {
namespace {

/// Every tensor becomes the weighted sum over ranks. In doubles: shares of a batch are no powers of
/// two.
void sum_weighted(Ranks& ranks, double share, const std::vector<at::Tensor>& tensors) {
  if (tensors.empty()) return;
  std::vector<at::Tensor> parts;
  for (const at::Tensor& each : tensors) {
    parts.push_back(each.reshape({-1}).to(at::kCPU, at::kDouble));
  }
  std::vector<at::Tensor> all = {at::cat(parts).mul_(share)};
  exec::sum_over(ranks, all);
  std::int64_t at = 0;
  for (const at::Tensor& each : tensors) {
    each.copy_(all[0].narrow(0, at, each.numel()).reshape(each.sizes()));
    at += each.numel();
  }
}

}  // namespace

void RankSums::reduce(const torch::optim::Optimizer& optimizer, double& loss) const {
  if (!context_.ranks) return;
  const at::NoGradGuard no_gradients;
  const at::Tensor value = at::full({1}, loss, at::kDouble);
  std::vector<at::Tensor> tensors = {value};
  for (const auto& group : optimizer.param_groups()) {
    for (const at::Tensor& each : group.params()) {
      at::Tensor& gradient = each.mutable_grad();
      if (!gradient.defined()) gradient = at::zeros_like(each);
      tensors.push_back(gradient);
    }
  }
  sum_weighted(*context_.ranks, share_, tensors);
  loss = value.item<double>();
}

void RankSums::average(const std::vector<at::Tensor>& state) const {
  if (!context_.ranks) return;
  const at::NoGradGuard no_gradients;
  std::vector<at::Tensor> tensors;
  for (const at::Tensor& each : state) {
    if (each.defined() && each.is_floating_point()) tensors.push_back(each);
  }
  sum_weighted(*context_.ranks, share_, tensors);
}

}  // namespace quench::qat
