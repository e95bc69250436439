// SPDX-License-Identifier: Apache-2.0
// Work in pieces of unlike size, on every core.
#pragma once

#include <cstdint>
#include <functional>

namespace quench::packed {

/// Calls `task` for each number below `count`, from several threads where `bytes` of work are
/// worth it. The first exception is rethrown here.
void run_tasks(std::size_t count, std::uint64_t bytes,
               const std::function<void(std::size_t)>& task);

}  // namespace quench::packed
