// SPDX-License-Identifier: Apache-2.0
// Some neighbouring samples of a source, as a source.
#pragma once

#include "quench/data.h"

namespace quench::data {

/// Samples [first, first + count) of another source, which must outlive it.
class Slice final : public SampleSource {
 public:
  Slice(SampleSource& whole, std::int64_t first, std::int64_t count)
      : whole_(whole), first_(first), count_(count) {}
  std::int64_t size() const override { return count_; }
  bool has_labels() const override { return whole_.has_labels(); }
  Sample read(std::int64_t index) override { return whole_.read(first_ + index); }
  bool concurrent() const override { return whole_.concurrent(); }
  bool batchable() const override { return whole_.batchable(); }

 private:
  SampleSource& whole_;
  std::int64_t first_;
  std::int64_t count_;
};

}  // namespace quench::data
