// SPDX-License-Identifier: Apache-2.0
// Sums over ranks: of gradients as they come, of the rest once a step.
#include "qat/engine/rank_sums.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "base/share.h"
#include "exec/engine/ranks.h"

namespace quench::qat {
namespace {

/// Tensors behind each other, times this rank's share. In doubles: shares of a batch are no powers
/// of two.
at::Tensor laid_out(const std::vector<at::Tensor>& tensors, double share) {
  const bool away = std::ranges::all_of(tensors, [](const at::Tensor& t) { return t.is_cuda(); });
  const at::Device device = away ? tensors.front().device() : at::Device(at::kCPU);
  std::vector<at::Tensor> parts;
  for (const at::Tensor& each : tensors) {
    parts.push_back(each.detach().reshape({-1}).to(device, at::kDouble));
  }
  return at::cat(parts).mul_(share);
}

void copy_back(const at::Tensor& all, const std::vector<at::Tensor>& tensors) {
  std::int64_t at = 0;
  for (const at::Tensor& each : tensors) {
    each.copy_(all.narrow(0, at, each.numel()).reshape(each.sizes()));
    at += each.numel();
  }
}

/// Every tensor becomes the weighted sum over ranks.
void sum_weighted(Ranks& ranks, double share, const std::vector<at::Tensor>& tensors) {
  if (tensors.empty()) return;
  at::Tensor all = laid_out(tensors, share);
  exec::begin_sum(ranks, all)();
  copy_back(all, tensors);
}

}  // namespace

/// Gradients that are summed together: one sum for each tensor would be all latency, one for all
/// of them could not begin before the last. The first step has one, and sees in which order
/// gradients come.
class Buckets {
 public:
  Buckets(Ranks& ranks, double share, const std::vector<at::Tensor>& learned)
      : ranks_(ranks), share_(share), parameters_(learned), gradients_(learned.size()) {
    std::vector<std::int64_t> all(parameters_.size());
    std::iota(all.begin(), all.end(), 0);
    fill(all, std::numeric_limits<std::int64_t>::max());
  }

  void start() {
    running_ = true;
    next_ = 0;
    came_.clear();
    for (Bucket& bucket : buckets_) bucket.missing = bucket.members.size();
    std::ranges::fill(gradients_, at::Tensor());
  }

  /// Parameter `i` has its gradient.
  void add(std::size_t i, const at::Tensor& gradient) {
    if (!running_ || gradients_[i].defined()) return;
    gradients_[i] = gradient;
    came_.push_back(static_cast<std::int64_t>(i));
    --buckets_[bucket_of_[i]].missing;
    // In one order: ranks must begin the same sums one after the other.
    while (next_ < buckets_.size() && buckets_[next_].missing == 0) begin(buckets_[next_++]);
  }

  void finish() {
    running_ = false;
    const at::NoGradGuard no_gradients;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (!gradients_[i].defined()) gradients_[i] = at::zeros_like(parameters_[i]);
    }
    while (next_ < buckets_.size()) begin(buckets_[next_++]);
    for (Bucket& bucket : buckets_) {
      bucket.wait();
      copy_back(bucket.sum, targets(bucket));
      bucket.sum.reset();
    }
    if (!ordered_) follow_first_rank();
  }

 private:
  struct Bucket {
    std::vector<std::size_t> members;  ///< of parameters_
    std::size_t missing = 0;
    at::Tensor sum;
    std::function<void()> wait;
  };

  /// Buckets of at least so many elements, of parameters in this order.
  void fill(const std::vector<std::int64_t>& order, std::int64_t least) {
    buckets_.clear();
    bucket_of_.resize(order.size());
    std::int64_t elements = least;
    for (const std::int64_t each : order) {
      const auto i = static_cast<std::size_t>(each);
      if (elements >= least) {
        buckets_.emplace_back();
        elements = 0;
      }
      elements += parameters_[i].numel();
      buckets_.back().members.push_back(i);
      bucket_of_[i] = buckets_.size() - 1;
    }
  }

  /// From now on buckets are those in the order in which rank 0 saw gradients come.
  void follow_first_rank() {
    constexpr std::int64_t kElements = std::int64_t{1} << 18;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const auto each = static_cast<std::int64_t>(i);
      if (std::ranges::find(came_, each) == came_.end()) came_.push_back(each);
    }
    const auto own = std::as_bytes(std::span(came_));
    const Bytes bytes = broadcast(ranks_, "the order of gradients", Bytes(own.begin(), own.end()));
    std::memcpy(came_.data(), bytes.data(), std::min(bytes.size(), own.size()));
    fill(came_, kElements);
    ordered_ = true;
  }

  std::vector<at::Tensor> targets(const Bucket& bucket) {
    std::vector<at::Tensor> found;
    for (const std::size_t i : bucket.members) {
      at::Tensor& target = parameters_[i].mutable_grad();
      if (!target.defined()) target = at::zeros_like(parameters_[i]);
      found.push_back(target);
    }
    return found;
  }

  void begin(Bucket& bucket) {
    const at::NoGradGuard no_gradients;
    std::vector<at::Tensor> members;
    for (const std::size_t i : bucket.members) members.push_back(gradients_[i]);
    bucket.sum = laid_out(members, share_);
    bucket.wait = exec::begin_sum(ranks_, bucket.sum);
  }

  Ranks& ranks_;
  double share_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> gradients_;
  std::vector<std::size_t> bucket_of_;  ///< by parameter
  std::vector<Bucket> buckets_;
  std::vector<std::int64_t> came_;  ///< parameters in the order of their gradients
  std::size_t next_ = 0;            ///< the first bucket whose sum has not begun
  bool running_ = false;
  bool ordered_ = false;
};

RankSums::RankSums(const Context& context, double share, const std::vector<at::Tensor>& learned)
    : context_(context), share_(share) {
  if (!context.ranks || context.ranks->size() == 1) return;
  buckets_ = std::make_shared<Buckets>(*context.ranks, share, learned);
  for (std::size_t i = 0; i < learned.size(); ++i) {
    learned[i].register_hook([weak = std::weak_ptr(buckets_), i](const at::Tensor& gradient) {
      if (const auto buckets = weak.lock()) buckets->add(i, gradient);
    });
  }
}

void RankSums::backward(const at::Tensor& loss) const {
  if (!buckets_) return loss.backward();
  buckets_->start();
  loss.backward();
  buckets_->finish();
}

double RankSums::sum(double loss) const {
  if (!buckets_) return loss;
  const at::Tensor value = at::full({1}, loss, at::kDouble);
  sum_weighted(*context_.ranks, share_, {value});
  return value.item<double>();
}

void RankSums::average(const std::vector<at::Tensor>& state) const {
  if (!buckets_) return;
  const at::NoGradGuard no_gradients;
  std::vector<at::Tensor> tensors;
  for (const at::Tensor& each : state) {
    if (each.defined() && each.is_floating_point()) tensors.push_back(each);
  }
  sum_weighted(*context_.ranks, share_, tensors);
}

}  // namespace quench::qat
