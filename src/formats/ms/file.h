// SPDX-License-Identifier: Apache-2.0
// A .ms file of MindSpore Lite, for looking at.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "quench/model.h"

namespace quench::ms {

/// The operators that nodes have: Lite's own, of this domain.
inline constexpr std::string_view kDomain = "mslite";

/// A graph that shows operators, tensors and shapes, and cannot run. Scales of quantised tensors
/// stand in their values' `foreign`.
Model read_bytes(std::span<const std::byte> file, std::shared_ptr<const void> owner);
/// Whether the bytes have its identifier. Never throws.
bool is_ms(std::span<const std::byte> file) noexcept;

/// What Lite calls an operator, or "operator 999".
std::string operator_name(int number);
std::vector<std::string> operator_names();

}  // namespace quench::ms
