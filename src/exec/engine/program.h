// SPDX-License-Identifier: Apache-2.0
// A graph compiled into steps over slots.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "exec/engine/cuda/count.h"
#include "exec/engine/device.h"
#include "exec/engine/kernel.h"
#include "exec/engine/samplewise.h"
#include "quench/session.h"

namespace quench::exec {

/// What compiling a graph takes besides the graph.
struct CompileOptions {
  std::map<std::string, std::int64_t> opsets;
  bool fast = true;
  bool byte_products = true;  ///< this machine multiplies bytes exactly
  bool among_bytes = false;   ///< set by `prepare` where layers run on bytes
  std::function<void(const StepTime&)> on_step;
  std::function<void(const TapSample&)> on_sample;
  std::vector<std::string> taps;  ///< values that runs may ask for, and `on_sample` wants
  /// Where a GPU counts the first `summarized` taps itself.
  std::function<void(const TapSummary&)> on_summary;
  std::size_t summarized = 0;
  /// Set by `prepare` where samples are computed apart from each other.
  std::optional<SampleBytes> sample_bytes;
  std::vector<std::string> notes;  ///< set by `prepare`: declarations that were not believed
  bool samplewise = false;         ///< set by `prepare`: samples of a batch never meet
  std::shared_ptr<Ranks> shards;   ///< the processes that hold the other parts of the model
  std::set<std::string> split;     ///< values of which each of them has a part
  Placement place;                 ///< where the steps run; constants are folded on the CPU
  /// Large constants are brought in, and their kernels made, step by step in every run.
  bool streams = false;
};

/// Steps in order, each reading and writing slots. A value's slot is its id in the graph.
class Program {
 public:
  /// Compiles, or adds every node without a kernel to `unsupported`.
  Program(Graph graph, const CompileOptions& options, std::vector<UnsupportedNode>& unsupported);

  /// Runs the whole graph: `inputs` in the order of its inputs, then of `captures()`.
  std::vector<at::Tensor> run(std::span<const at::Tensor> inputs);
  /// Computes `wanted` slots from the fed ones; `feeds` are (slot, tensor).
  std::vector<at::Tensor> run_between(std::vector<std::pair<int, at::Tensor>> feeds,
                                      const std::vector<int>& wanted);

  /// One of several runs: `feeds` are (slot, tensor).
  struct Between {
    std::vector<std::pair<int, at::Tensor>> feeds;
    std::vector<int> wanted;
  };
  /// As many calls of `run_between`, which take each step one after the other: constants that are
  /// brought in for a step serve all of them.
  std::vector<std::vector<at::Tensor>> run_together(std::vector<Between> runs);

  const Graph& graph() const noexcept { return graph_; }
  /// Names of outer values the graph reads.
  const std::vector<std::string>& captures() const noexcept { return captures_; }
  /// On a GPU, what taps saw since the last time goes to `on_sample`: a run may have to be done
  /// again in parts.
  void show_kept();
  void forget_kept();

 private:
  using Clock = std::chrono::steady_clock;
  struct Step {
    KernelFunction run;
    std::vector<int> in;
    std::vector<int> out;
    std::string label;
    std::string op_type;
    bool there = false;       ///< runs where `place_` says
    bool integers = false;    ///< likewise with what was quantised there
    bool shares = false;      ///< may run in the thread pool
    bool light = false;       ///< likewise, where its tensors are small
    bool small = false;       ///< they were in the last run
    std::int64_t shared = 0;  ///< how often that had work for the thread pool
    int streamed = -1;        ///< the node whose kernel is made for every run
  };
  /// A streamed step's kernel, with the constants that it reads in calls.
  struct MadeStep {
    KernelFunction run;
    std::vector<int> in;
    std::vector<std::pair<int, at::Tensor>> brought;  ///< by slot
  };
  struct Lane;
  /// Steps of a schedule that follow each other and may run in the thread pool.
  struct Stretch {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::int64_t shared = 0;  ///< how often the last run had work for the thread pool
    bool joins = false;       ///< its steps may run in the thread pool
  };
  /// The steps that a pair of feeds and wanted slots needs, and which slots each step frees.
  struct Schedule {
    std::vector<int> fed;
    std::vector<int> wanted;
    std::vector<int> steps;
    std::vector<std::vector<int>> release;
    std::vector<std::vector<int>> reusable;  ///< of those, the ones a kernel may write into
    std::vector<Stretch> stretches;          ///< cover all steps
    std::size_t sizes = 0;                   ///< the state of `sizes_` that they were made for
  };

  void give_up(ValueId id);
  void add_step(const Node& node, const CompileOptions& options,
                std::vector<UnsupportedNode>& unsupported);
  void bring(const Step& step);
  void bring(int slot, bool there);
  at::Tensor whole(const at::Tensor& part) const;
  void show_samples(int slot);
  void show_samples(std::size_t tap, const at::Tensor& value);
  Schedule& schedule(const std::vector<int>& fed, const std::vector<int>& wanted);
  Schedule make_schedule(const std::vector<int>& fed, const std::vector<int>& wanted) const;
  std::vector<int> steps_between(const std::vector<int>& fed, const std::vector<int>& wanted) const;
  std::vector<Stretch> stretches_of(const std::vector<int>& steps) const;
  void watch_sizes(Step& step);
  void run_steps(Schedule& schedule);
  void run_stretch(const Schedule& schedule, const Stretch& stretch);
  template <typename Run>
  void timed(const Step& step, const Run& run);
  void run_step(const Step& step, Call& call);
  OpContext context_of(const Node& node, const CompileOptions& options,
                       std::vector<UnsupportedNode>& unsupported) const;
  bool is_streamed(ValueId id) const;
  bool may_stream(const Node& node) const;
  MadeStep make_now(const Step& step) const;
  void run_made(const Step& step, const MadeStep& made, std::span<const int> dying);
  Lane lane_of(Between&& run) const;
  void step_together(std::size_t index, std::vector<Lane>& lanes);
  void clear(const Schedule& schedule);

  CompileOptions options_;            ///< where kernels are made while the program runs
  std::vector<std::size_t> readers_;  ///< by value; counted down as kernels take constants
  Graph graph_;
  std::function<void(const StepTime&)> on_step_;
  std::function<void(const TapSample&)> on_sample_;
  std::function<void(const TapSummary&)> on_summary_;
  std::size_t summarized_ = 0;
  std::unique_ptr<TapCounter> counter_;  ///< where a GPU counts
  std::vector<int> tap_of_;              ///< by slot: the index of the tap, or -1
  std::shared_ptr<Ranks> shards_;
  std::vector<bool> split_;         ///< by tap: each of the shards has a part of it
  std::vector<int> constant_taps_;  ///< slots of taps that do not depend on what is fed
  std::vector<Step> steps_;
  std::vector<int> producer_;      ///< by slot: the step that fills it, or -1
  std::vector<at::Tensor> slots_;  ///< constants stay; everything else lives during a run
  std::vector<std::string> captures_;
  std::vector<int> capture_slots_;
  std::vector<std::unique_ptr<Schedule>> schedules_;
  Placement place_;
  std::vector<bool>
      read_here_;  ///< by slot: a step on the CPU reads it, while others are elsewhere
  std::map<int, std::pair<at::Tensor, at::Tensor>> twins_;  ///< constants here and there
  std::map<std::size_t, std::vector<at::Tensor>> kept_;     ///< by tap
  std::size_t sizes_ = 0;    ///< how often tensors of light steps became small or large
  std::size_t run_ = 0;      ///< which of the runs that go together is at a step
  Clock::time_point begin_;  ///< of a run whose steps are timed
};

template <typename Run>
void Program::timed(const Step& step, const Run& run) {
  if (!on_step_) return run();
  using Milliseconds = std::chrono::duration<double, std::milli>;
  const auto start = Clock::now();
  run();
  on_step_({.node = step.label,
            .op_type = step.op_type,
            .start_ms = Milliseconds(start - begin_).count(),
            .ms = Milliseconds(Clock::now() - start).count()});
}

/// Runs every node whose inputs are all constants and keeps its results as constants.
void fold_constants(Graph& graph, const CompileOptions& options);

}  // namespace quench::exec
