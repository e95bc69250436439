// SPDX-License-Identifier: Apache-2.0
// Samples for evaluation in batches, read once and kept while they are small enough.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "quench/context.h"
#include "quench/data.h"

namespace quench::evaluation {

/// What one run is fed with. A model with a fixed batch gets its last sample repeated; `samples`
/// says how many are real.
struct EvalBatch {
  TensorMap inputs;
  std::vector<std::int64_t> labels;
  std::int64_t samples = 0;
  std::int64_t rows = 0;
};

/// Batches by index; samples of different shapes are never in one. Memory for what is kept is
/// bounded; beyond it batches are read again.
class EvalData {
 public:
  /// `batch` counts unless the model fixes it.
  EvalData(std::unique_ptr<SampleSource> source, const std::vector<Value>& inputs,
           std::int64_t batch, const Context& context);

  /// Runs that are at hand.
  EvalData(std::vector<TensorMap> runs, const Context& context);

  std::int64_t size() const;
  bool has_labels() const { return source_ && source_->has_labels(); }
  std::int64_t batches() const { return static_cast<std::int64_t>(runs_.size()); }
  /// How many samples the batches up to and with this one hold.
  std::int64_t samples_until(std::int64_t index) const;
  /// From now on batches hold the samples in this order.
  void set_order(std::vector<std::int64_t> order);
  std::shared_ptr<const EvalBatch> batch(std::int64_t index);
  /// A number that changes with the samples: taken from some of them, spread over all.
  std::uint64_t fingerprint();

 private:
  /// Neighbours that run together.
  struct Run {
    std::int64_t first = 0;
    std::int64_t count = 0;
  };
  std::int64_t at(std::int64_t place) const;
  void read_shapes();
  void divide();
  std::shared_ptr<EvalBatch> read(const Run& run);

  std::unique_ptr<SampleSource> source_;
  std::int64_t batch_ = 1;
  bool fixed_ = false;
  const Context* context_;
  std::size_t kept_bytes_ = 0;
  std::map<std::int64_t, std::shared_ptr<const EvalBatch>> kept_;
  std::vector<std::int64_t> order_;         ///< empty: as they come
  std::vector<std::vector<Shape>> shapes_;  ///< of the inputs of each sample; empty: all alike
  std::vector<Run> runs_;
};

/// FNV-1a, for fingerprints.
std::uint64_t hash_bytes(std::span<const std::byte> bytes,
                         std::uint64_t seed = 0xcbf29ce484222325U);
std::uint64_t hash_text(std::string_view text, std::uint64_t seed = 0xcbf29ce484222325U);

/// The rows of an output that belong to sample `index` of `rows`; all of them where it has no such
/// rows.
Tensor row_of(const Tensor& output, std::int64_t index, std::int64_t rows);

}  // namespace quench::evaluation
