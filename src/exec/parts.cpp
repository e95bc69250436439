// SPDX-License-Identifier: Apache-2.0
// Halves what is run at a time until there is room for it.
#include "exec/parts.h"

#include <algorithm>

#include "base/format.h"
#include "quench/error.h"

namespace quench::exec {

void Parts::run(std::int64_t batch, bool apart, const Room& room, const Context& context,
                const std::function<void(std::int64_t size)>& run) {
  std::int64_t size = apart && most_ > 0 ? std::min(most_, batch) : batch;
  while (true) {
    try {
      return run(size);
    } catch (const Error& error) {
      if (!room.is_full(error.what())) throw;
      if (size < 2) {
        fail(ErrorKind::Unsupported, "{} is too small for one sample; take {}", room.name,
             room.way_out);
      }
      if (!apart) {
        fail(ErrorKind::Unsupported, "{} is too small for this batch; take a smaller --batch or {}",
             room.name, room.way_out);
      }
    }
    most_ = size = (size + 1) / 2;
    context.warn(
        format("{} is too small for {} samples: they run in parts of {}", room.name, batch, size));
  }
}

}  // namespace quench::exec
