// SPDX-License-Identifier: Apache-2.0
// Batches that memory has no room for, run in parts.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "quench/context.h"

namespace quench::exec {

/// What may have no room for a batch, in words.
struct Room {
  std::string name;                               ///< as in "the GPU's memory"
  std::string way_out;                            ///< as in "--device cpu"
  std::function<bool(std::string_view)> is_full;  ///< whether an error says that
};

/// Remembers how much there was room for: a batch that did not fit is run in parts of half its
/// size, and so are those that follow.
class Parts {
 public:
  /// `run(size)` runs all of the batch, `size` samples at a time. `apart`: whether its samples may
  /// be run apart; else `run(batch)` is all that is tried. Throws Error(Unsupported) where there is
  /// no room for one sample; other errors pass.
  void run(std::int64_t batch, bool apart, const Room& room, const Context& context,
           const std::function<void(std::int64_t size)>& run);

 private:
  std::int64_t most_ = 0;  ///< samples that there was room for; 0: all so far
};

}  // namespace quench::exec
