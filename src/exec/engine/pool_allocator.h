// SPDX-License-Identifier: Apache-2.0
// Memory for activations that is kept between steps.
#pragma once

#include <cstdint>
#include <memory>

namespace quench::exec {

/// Makes libtorch take large blocks from a pool. The system's allocator returns them after every
/// step, and fetching zeroed pages again costs more than many kernels (SqueezeNet: a fifth of the
/// run). For the whole process, once.
void use_pool_allocator();
/// Gives blocks that nobody uses back to the system.
void trim_pool();

/// While it lives, a block that would bring the process above so many bytes of memory is refused
/// with std::bad_alloc, after unused blocks have gone. 0: no ceiling.
class CeilingScope {
 public:
  explicit CeilingScope(std::uint64_t bytes);
  ~CeilingScope();
  CeilingScope(const CeilingScope&) = delete;
  CeilingScope& operator=(const CeilingScope&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Likewise for memory that is not the pool's: throws std::bad_alloc where there is no room.
void expect_room(std::uint64_t bytes);

}  // namespace quench::exec
