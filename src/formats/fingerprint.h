// SPDX-License-Identifier: Apache-2.0
// A number that tells whether a model or data are still those of before.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "quench/model.h"

namespace quench {

/// Finds changes, not forgery. What is added in pieces counts as a sequence of pieces.
class Fingerprint {
 public:
  void add(std::span<const std::byte> bytes) noexcept;
  void add(std::string_view text) noexcept;
  void add(std::int64_t number) noexcept;
  void add(const TensorMap& tensors);
  /// 16 hexadecimal digits.
  std::string text() const;

 private:
  std::uint64_t state_ = 0x9e3779b97f4a7c15;
};

/// Of a model as it was read: its nodes and all its constants. Mapped weights are let go again.
std::string fingerprint(const Model& model);

}  // namespace quench
