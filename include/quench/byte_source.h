// SPDX-License-Identifier: Apache-2.0
// Bytes that need not be in memory: of models that are larger than it.
#pragma once

#include <cstddef>
#include <memory>

namespace quench {

/// Where the bytes of a tensor come from when they are wanted: a file, or a computation.
class ByteSource {
 public:
  ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  virtual ~ByteSource() = default;
  /// The bytes, which are in memory as long as what this returns lives. The same at every call;
  /// called by one thread at a time.
  virtual std::shared_ptr<const std::byte> hold() const = 0;
};

}  // namespace quench
