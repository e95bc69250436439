// SPDX-License-Identifier: Apache-2.0
// Values of all samples: in memory, or in a file where they are large.
#pragma once

#include "exec/engine/device.h"
#include "qat/engine/torch.h"

namespace quench::qat {

/// Rows along the first dimension, one for each sample.
class Cache {
 public:
  /// Puts the rows of `count` samples where they belong; `samples` is how many there will be in
  /// all. Throws Error(Unsupported) where samples do not lie in rows.
  void add(const at::Tensor& rows, std::int64_t count, std::int64_t samples, std::int64_t first);
  at::Tensor rows(std::int64_t first, std::int64_t count) const {
    return all_.narrow(0, first, count);
  }
  std::int64_t elements() const { return all_.numel() / all_.size(0); }  ///< of one sample
  /// Until `leave`, `pick` takes a copy of all rows on a GPU, if there is room for one.
  void keep_at(const exec::Placement& place);
  void leave() { there_ = at::Tensor(); }
  /// A copy of the rows of some samples.
  at::Tensor pick(const std::vector<std::int64_t>& samples) const;

 private:
  at::Tensor all_;
  at::Tensor there_;
};

}  // namespace quench::qat
