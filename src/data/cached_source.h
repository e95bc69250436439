// SPDX-License-Identifier: Apache-2.0
// Samples that several steps read are prepared once.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "quench/data.h"

namespace quench {

/// Keeps the samples that were read first, as many as fit in a bound.
class CachedSource final : public SampleSource {
 public:
  explicit CachedSource(std::unique_ptr<SampleSource> source) : source_(std::move(source)) {}
  std::int64_t size() const override { return source_->size(); }
  bool has_labels() const override { return source_->has_labels(); }
  std::shared_ptr<const Truths> truths() const override { return source_->truths(); }
  bool raw_pixels() const override { return source_->raw_pixels(); }
  Sample read(std::int64_t index) override;
  bool concurrent() const override { return source_->concurrent(); }
  bool batchable() const override { return source_->batchable(); }

 private:
  std::unique_ptr<SampleSource> source_;
  std::mutex mutex_;
  std::map<std::int64_t, Sample> kept_;
  std::size_t bytes_ = 0;
};

}  // namespace quench
