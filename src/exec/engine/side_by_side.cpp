// SPDX-License-Identifier: Apache-2.0
// Several runs that take each step together: what the step is made of is brought in once for all.
#include "exec/engine/making.h"
#include "exec/engine/program.h"

namespace quench::exec {

/// A run between two of its steps.
struct Program::Lane {
  Schedule plan;
  std::size_t next = 0;           ///< of the plan's steps
  std::vector<at::Tensor> slots;  ///< constants too, which all lanes share
};

namespace {

/// Makes a lane's slots the program's.
class Entered {
 public:
  Entered(std::vector<at::Tensor>& slots, std::vector<at::Tensor>& lane)
      : slots_(slots), lane_(lane) {
    slots_.swap(lane_);
  }
  ~Entered() { slots_.swap(lane_); }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

 private:
  std::vector<at::Tensor>& slots_;
  std::vector<at::Tensor>& lane_;
};

}  // namespace

Program::Lane Program::lane_of(Between&& run) const {
  std::vector<int> fed;
  for (const auto& feed : run.feeds) fed.push_back(feed.first);
  Lane lane{.plan = make_schedule(fed, run.wanted), .slots = slots_};
  for (auto& [slot, tensor] : run.feeds) {
    lane.slots[static_cast<std::size_t>(slot)] = std::move(tensor);
  }
  return lane;
}

void Program::step_together(std::size_t index, std::vector<Lane>& lanes) {
  const Step& step = steps_[index];
  std::optional<MadeStep> made;
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    Lane& lane = lanes[i];
    const std::vector<int>& steps = lane.plan.steps;
    if (lane.next == steps.size() || steps[lane.next] != static_cast<int>(index)) continue;
    const std::span<const int> dying = lane.plan.reusable[lane.next];
    const std::vector<int>& released = lane.plan.release[lane.next++];
    run_ = i;
    const Entered entered(slots_, lane.slots);
    timed(step, [&] {
      if (step.streamed >= 0) {
        if (!made) made = make_now(step);
        return run_made(step, *made, dying);
      }
      Call call(slots_, step.in, step.out, dying);
      run_step(step, call);
    });
    if (on_sample_) {
      for (const int slot : step.out) show_samples(slot);
    }
    for (const int slot : released) slots_[static_cast<std::size_t>(slot)].reset();
  }
}

std::vector<std::vector<at::Tensor>> Program::run_together(std::vector<Between> runs) {
  std::vector<Lane> lanes;
  for (Between& run : runs) lanes.push_back(lane_of(std::move(run)));
  begin_ = Clock::now();
  for (run_ = 0; on_sample_ && run_ < lanes.size(); ++run_) {
    const Entered entered(slots_, lanes[run_].slots);
    for (const int slot : lanes[run_].plan.fed) show_samples(slot);
    for (const int slot : constant_taps_) show_samples(slot);
  }
  for (std::size_t i = 0; i < steps_.size(); ++i) step_together(i, lanes);
  run_ = 0;
  std::vector<std::vector<at::Tensor>> results;
  for (const Lane& lane : lanes) {
    std::vector<at::Tensor>& values = results.emplace_back();
    for (const int slot : lane.plan.wanted) {
      values.push_back(lane.slots[static_cast<std::size_t>(slot)]);
    }
  }
  return results;
}

}  // namespace quench::exec
