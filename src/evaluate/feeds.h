// SPDX-License-Identifier: Apache-2.0
// Batches to feed a session with: from data, or at random.
#pragma once

#include <memory>
#include <optional>
#include <random>

#include "base/ahead.h"
#include "quench/evaluate.h"
#include "quench/session.h"

namespace quench {

/// What one run is fed with. The last batch of a model with a fixed batch is filled up by
/// repeating its last sample; `samples` says how many are real.
struct Feed {
  TensorMap inputs;
  EngineValues entered;  ///< the same, where the session that the reader knows runs
  std::vector<std::int64_t> labels;
  std::vector<std::string> names;
  std::int64_t samples = 0;
  std::int64_t rows = 0;
};

/// Hands out batches in order, with progress, and stops when the caller asks to.
class FeedReader {
 public:
  /// `shared`: of the data, only the samples of this rank. `session` is what runs on them: while it
  /// does, the next batch is put together and brought there.
  FeedReader(const EvaluateOptions& options, const std::vector<Value>& inputs,
             const Context& context, bool shared = false, const Session* session = nullptr);
  std::optional<Feed> next();
  std::int64_t batch() const noexcept { return batch_; }
  bool has_labels() const { return source_ && source_->has_labels(); }
  std::shared_ptr<const Truths> truths() const { return source_ ? source_->truths() : nullptr; }
  /// Null where inputs are drawn at random.
  SampleSource* source() const { return source_.get(); }
  /// What the data are told by; "": there are none.
  std::string identity() const;

 private:
  std::optional<Feed> read_data();
  std::optional<Feed> next_at_random();

  const EvaluateOptions& options_;
  const std::vector<Value>& inputs_;
  const Context& context_;
  std::int64_t batch_ = 0;
  bool fixed_batch_ = false;
  std::int64_t done_ = 0;
  std::int64_t total_ = 0;
  std::unique_ptr<SampleSource> source_;
  std::unique_ptr<SampleSource> own_;  ///< the part of it that is read
  std::unique_ptr<BatchReader> reader_;
  std::mt19937_64 generator_;
  std::unique_ptr<Ahead<Feed>> ahead_;
};

/// The part of an output that belongs to the first `samples` of `rows` samples.
Tensor real_rows(const Tensor& output, std::int64_t samples, std::int64_t rows);

}  // namespace quench
