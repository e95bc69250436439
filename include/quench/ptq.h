// SPDX-License-Identifier: Apache-2.0
// Full quantisation in steps from C++.
#pragma once

#include <memory>
#include <vector>

#include "quench/quantize.h"
#include "quench/session.h"

namespace quench {

/// A float model that watches its activations while it runs. Made by `PTQ::quantize`.
class ObservedModel {
 public:
  ~ObservedModel();
  ObservedModel(ObservedModel&&) noexcept;
  ObservedModel& operator=(ObservedModel&&) noexcept;

  /// Runs a batch of any size, adds it to the statistics and returns the float outputs. A run that
  /// throws leaves the statistics as they were.
  TensorMap run(const TensorMap& batch);
  /// The same with values that lie in the engine already, on a GPU for instance, and may be run
  /// more than once. The outputs stay there.
  EngineValues enter(const TensorMap& batch) const;
  EngineValues run(const EngineValues& batch);
  /// Adds what was seen elsewhere, such as a file of `calibrate_model`; it counts as later samples.
  void merge(const StatisticMap& statistics);

  StatisticMap statistics() const;
  const Model& model() const noexcept;  ///< prepared: what the plan speaks of
  const QuantPlan& plan() const noexcept;
  const std::vector<Value>& inputs() const noexcept;  ///< what `run` must be fed with

 private:
  friend class PTQ;
  struct State;
  explicit ObservedModel(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Shapes of inputs by name; -1: open.
using InputShapes = std::map<std::string, Shape>;
/// Saves a model, with the shapes of its inputs set as `input_spec` has them. The extension of
/// `path` says the format; without one it is Paddle's `path`.pdmodel and `path`.pdiparams.
void save_quantized_model(const Model& model, const std::string& path,
                          const InputShapes& input_spec = {}, const SaveOptions& options = {});

/// PaddleSlim's flow: `PTQ ptq(config); auto observed = ptq.quantize(model);` then
/// `observed.run(batch)` for every batch, then `save(ptq.convert(observed), path)`.
class PTQ {
 public:
  explicit PTQ(QuantConfig config = {}, Context context = {});

  /// Plans the quantisation and opens a session that observes. A name in the configuration that
  /// matches nothing is an Error that suggests the nearest.
  ObservedModel quantize(const Model& model, const FuseOptions& fuse = {}) const;
  /// The model with its Q/DQ nodes; `observed` may go on observing.
  Model convert(const ObservedModel& observed) const;
  /// Both, and `save_quantized_model`.
  void save_quantized_model(const ObservedModel& observed, const std::string& path,
                            const InputShapes& input_spec = {}) const;
  const QuantConfig& config() const noexcept { return config_; }

 private:
  QuantConfig config_;
  Context context_;
};

}  // namespace quench
