// SPDX-License-Identifier: Apache-2.0
// Results that are more than memory should hold.
#pragma once

#include <mutex>
#include <string>

#include "base/window.h"
#include "quench/tensor.h"

namespace quench {

/// Keeps large tensors: the first of them in memory, those that would make more than `most` bytes
/// in a file.
class Overflow {
 public:
  Overflow(std::string folder, std::uint64_t most) : spool_(std::move(folder)), most_(most) {}

  /// The tensor, or one that is equal to it and stored.
  Tensor keep(Tensor tensor);

 private:
  std::mutex mutex_;
  Spool spool_;
  std::uint64_t most_;
  std::uint64_t kept_ = 0;
};

}  // namespace quench
