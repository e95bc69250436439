// SPDX-License-Identifier: Apache-2.0
// One layer quantised at a time. The float values of a batch are computed once; for each layer
// only its quantised self, in a session of its own few nodes, and what lies behind it are run.
// Threads take layers, not parts of an operator: none waits for another.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analyze/simulator.h"
#include "analyze/workers.h"
#include "evaluate/eval_data.h"
#include "quench/session.h"

namespace quench::analyze {

/// Runs of a model in which one layer is quantised.
class PartialRunner {
 public:
  PartialRunner(Simulator& simulator, std::vector<std::string> outputs, const Context& context);

  /// Runs the float model and gives its outputs; what lies inside is kept for `run`.
  const TensorMap& set_batch(const evaluation::EvalBatch& batch);
  /// Gets a layer and the outputs with only it quantised; one call at a time, in any order.
  using Take = std::function<void(std::size_t layer, const TensorMap& outputs)>;
  void run(std::span<const std::size_t> layers, const Take& take);

 private:
  /// How a layer enters the float model.
  struct Segment {
    std::vector<std::string> inputs;  ///< float values that the layer's session reads
    std::vector<std::string> seen;    ///< its outputs there
    std::vector<std::string> fed;     ///< the float model's values that they stand for
    std::vector<std::string> bypass;  ///< float values that what lies behind reads besides
    std::vector<std::string> wanted;  ///< outputs that change
    std::optional<Model> model;       ///< until the session is opened
    std::unique_ptr<Session> session;
  };
  Segment make_segment(const Layer& layer);
  void add_stored(const Layer& layer, Segment& segment) const;
  void find_readers(Segment& segment) const;
  TensorMap run_one(const Segment& segment, Session& behind) const;

  Simulator& simulator_;
  std::vector<std::string> outputs_;
  const Context& context_;
  Uses uses_;
  std::vector<Segment> segments_;
  std::vector<std::string> taps_;
  std::optional<Workers> workers_;  ///< of the float model
  EngineValues cached_;
  TensorMap expected_;
};

}  // namespace quench::analyze
