// SPDX-License-Identifier: Apache-2.0
// Runs a model. The engine behind it is a module that is loaded when the first session opens.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "quench/context.h"
#include "quench/engine_value.h"
#include "quench/model.h"
#include "quench/summary.h"

namespace quench {

/// What one step of a run took.
struct StepTime {
  std::string_view node;
  std::string_view op_type;
  double start_ms = 0;  ///< since the run began
  double ms = 0;
};

/// The values of one sample of a tapped float value, in the order in which they lie in memory.
struct TapSample {
  std::size_t tap = 0;     ///< index in SessionOptions::taps
  std::size_t run = 0;     ///< which of the runs that go together
  int worker = 0;          ///< which of the session's threads calls: below its number of threads
  std::int64_t index = 0;  ///< which sample of the run's batch
  std::span<const float> values;
};

/// What a tapped float value came to in one run, counted where it lies.
struct TapSummary {
  std::size_t tap = 0;                     ///< index in SessionOptions::taps
  std::span<const SampleSummary> samples;  ///< in the order of the batch
  std::span<const std::int64_t> bins;      ///< counts of all samples, over their common range
};

/// When quantised weights become floats: once, when the session opens, or tile by tile in every
/// run, so that they stay small in memory.
enum class Dequantize { AtLoad, OnTheFly };

/// How convolutions between Q/DQ nodes come from their sums to bytes: rounded once, as ONNX Runtime
/// and LiteRT's default kernels do, or twice, in fixed point, as LiteRT's reference kernels do.
enum class Rounding { Once, Twice };

/// Which products of bytes kernels may use: those of the processor, or none, as on one without VNNI
/// (whose own would saturate silently in between).
enum class ByteProducts { OfProcessor, None };

/// How a session prepares a model.
struct SessionOptions {
  /// Values, besides the graph's outputs, that runs may ask for or start from. Fusion respects
  /// them.
  std::vector<std::string> taps;
  /// Every value is a tap: exact, and slower.
  bool tap_all = false;
  /// Plain kernels, no fusion, no oneDNN: what the fast ones are checked against.
  bool reference = false;
  Dequantize dequantize = Dequantize::AtLoad;
  /// Operators between Q/DQ nodes run on integers where the machine multiplies bytes exactly;
  /// otherwise, and always in front of a tap, on floats between exact rounding.
  bool integer = true;
  /// Without them layers of 8-bit models run in float between exact rounding, and the context's
  /// log is warned with their names.
  ByteProducts byte_products = ByteProducts::OfProcessor;
  /// Twice is exact and slow, and an Error(Usage) where no convolution runs on integers.
  Rounding rounding = Rounding::Once;
  /// Called for every sample of every tap as soon as it is computed, where it lies, from several
  /// threads at once: nothing is copied or kept. Runs then need not ask for the taps.
  std::function<void(const TapSample&)> on_sample;
  /// Where values lie on a GPU the first `summarized` taps are counted there, and their summaries
  /// come here after each run, in place of their values in `on_sample`; several threads at once,
  /// one for each tap.
  std::function<void(const TapSummary&)> on_summary;
  std::size_t summarized = 0;
  /// Called after every step of every run, for profiles; timing each step costs a little.
  std::function<void(const StepTime&)> on_step;
};

/// A node that the engine cannot run, and why.
struct UnsupportedNode {
  std::string node;
  std::string op_type;
  std::string reason;
};

/// A model made ready to run. Runs of one session must not overlap.
class Session {
 public:
  /// Throws Error(Unsupported) that lists every node the engine cannot run. A model that is moved
  /// in gives up its weights as they are packed, so that none is held twice.
  Session(Model model, const SessionOptions& options = {}, const Context& context = {});
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  /// Computes `wanted` (default: the graph's outputs) from `feeds`. A feed may be any input or
  /// tap; only what lies between feeds and wanted values is computed.
  TensorMap run(const TensorMap& feeds, std::span<const std::string> wanted = {});
  /// The three steps of a run, for values that several runs read.
  EngineValues enter(const TensorMap& feeds) const;
  EngineValues compute(const EngineValues& feeds, std::span<const std::string> wanted = {});
  TensorMap leave(const EngineValues& values) const;
  /// Several runs, with the results of as many calls. Where weights do not fit into memory and are
  /// read in every run, they are read once for `runs_together` runs, which 1 is elsewhere.
  std::vector<EngineValues> compute_all(std::span<const RunRequest> runs);
  std::vector<TensorMap> run_all(std::span<const TensorMap> feeds,
                                 std::span<const std::string> wanted = {});
  std::size_t runs_together() const noexcept;

  /// The values a plain run must be fed with, with their types.
  const std::vector<Value>& inputs() const noexcept;
  const std::vector<Value>& outputs() const noexcept;

  /// The implementation, made by the engine module.
  class Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

/// Every node of the model that the engine cannot run; empty means a session would open.
/// Answers from the operator tables alone, without loading the engine.
std::vector<UnsupportedNode> find_unsupported(const Model& model);

/// Every operator the engine can run, as "Conv" or "domain.Name", sorted.
std::vector<std::string> supported_operators();

/// Loads the engine now, so that what follows does not include it (timing, memory).
void load_engine(const Context& context = {});

}  // namespace quench
