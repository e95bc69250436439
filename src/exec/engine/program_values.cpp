// SPDX-License-Identifier: Apache-2.0
// A program's values between its steps: where they lie, and who sees them.
#include "exec/engine/program.h"
#include "exec/engine/ranks.h"

namespace quench::exec {

void Program::bring(const Step& step) {
  for (const int slot : step.in) {
    if (slot < 0 || (step.integers && slots_[static_cast<std::size_t>(slot)].is_cuda())) continue;
    bring(slot, step.there);
  }
}

/// A value is where its last reader wanted it; a constant that steps of both sides read is on both.
void Program::bring(int slot, bool there) {
  at::Tensor& value = slots_[static_cast<std::size_t>(slot)];
  if (!value.defined() || value.is_cuda() == (there && place_.wants(value))) return;
  const bool constant = producer_[static_cast<std::size_t>(slot)] < 0;
  if (!constant || !read_here_[static_cast<std::size_t>(slot)]) {
    value = there ? place_.there(value) : place_.here(value);
    return;
  }
  auto& [here, away] = twins_[slot];
  if (value.is_cuda()) {
    if (!away.is_same(value)) {  // an input that was given there
      away = value;
      here = place_.here(value);
    }
    value = here;
    return;
  }
  if (!here.is_same(value)) {  // the first time, or another value was fed in its place
    here = value;
    away = place_.there(value);
  }
  value = away;
}

void Program::show_samples(int slot) {
  if (slot < 0 || tap_of_[static_cast<std::size_t>(slot)] < 0) return;
  const auto tap = static_cast<std::size_t>(tap_of_[static_cast<std::size_t>(slot)]);
  const at::Tensor& value = slots_[static_cast<std::size_t>(slot)];
  if (!value.defined() || !value.is_floating_point() || value.numel() == 0) return;
  if (split_[tap]) return show_samples(tap, whole(value));
  if (!place_.away()) return show_samples(tap, value);
  if (counter_ && value.is_cuda() && tap < summarized_ &&
      (value.scalar_type() == at::kFloat || value.scalar_type() == at::kHalf)) {
    return counter_->count(tap, value);
  }
  const at::Tensor here = place_.here(value);
  kept_[tap].push_back(here.dim() == 0 ? here.reshape({1}) : here);
}

/// What all shards have of each sample, one behind the other: the order within a sample is no
/// matter.
at::Tensor Program::whole(const at::Tensor& part) const {
  const at::Tensor here = place_.here(part);
  const std::int64_t samples = here.dim() == 0 ? 1 : here.size(0);
  return gather_over(*shards_, here.reshape({samples, here.numel() / samples}), 1);
}

void Program::show_kept() {
  for (const auto& [tap, parts] : kept_) {
    show_samples(tap, parts.size() == 1 ? parts.front() : at::cat(parts));
  }
  kept_.clear();
  if (counter_) counter_->show(on_summary_);
}

void Program::forget_kept() {
  kept_.clear();
  if (counter_) counter_->forget();
}

void Program::show_samples(std::size_t tap, const at::Tensor& value) {
  if (value.scalar_type() != at::kFloat) return;
  // Any order of elements will do as long as samples stay apart.
  const at::Tensor dense = value.dim() > 0 && value.is_non_overlapping_and_dense() &&
                                   value.stride(0) * value.size(0) == value.numel()
                               ? value
                               : value.contiguous();
  const std::int64_t samples = dense.dim() == 0 ? 1 : dense.size(0);
  const auto size = static_cast<std::size_t>(dense.numel() / samples);
  const float* data = dense.data_ptr<float>();
  at::parallel_for(0, samples, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      on_sample_({.tap = tap,
                  .run = run_,
                  .worker = at::get_thread_num(),
                  .index = i,
                  .values = {data + static_cast<std::size_t>(i) * size, size}});
    }
  });
}

}  // namespace quench::exec
