// SPDX-License-Identifier: Apache-2.0
// Integers that shape computations yield: numbers, symbols such as "batch" or "2*H+1", or unknown.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "quench/graph.h"

namespace quench::ops {

using Dims = std::vector<Dim>;

/// Unlike Dim it may be negative, as the -1 in a Reshape is.
struct SymInt {
  std::optional<std::int64_t> number;
  std::string symbol;

  SymInt() = default;
  SymInt(std::int64_t value)
      : number(value) {}  // NOLINT(google-explicit-constructor): a number is one
  explicit SymInt(const Dim& dim);

  bool known() const noexcept { return number.has_value() || !symbol.empty(); }
  bool is(std::int64_t value) const noexcept { return number == value; }
  /// A negative number becomes an unknown dimension.
  Dim dim() const;
  bool operator==(const SymInt&) const = default;
};
using SymInts = std::vector<SymInt>;

/// Arithmetic; what overflows, or would be too long to read, is unknown.
SymInt operator+(const SymInt& a, const SymInt& b);
SymInt operator-(const SymInt& a, const SymInt& b);
SymInt operator*(const SymInt& a, const SymInt& b);
/// Rounded down; unknown when the divisor is not a positive number.
SymInt floor_div(const SymInt& a, std::int64_t divisor);
SymInt ceil_div(const SymInt& a, std::int64_t divisor);

SymInts to_ints(std::span<const Dim> dims);
Dims to_dims(const SymInts& ints);
/// Dimensions that are plain numbers.
Dims to_dims(std::span<const std::int64_t> numbers);
/// The product of all dimensions.
SymInt product(std::span<const Dim> dims);
/// product(total) / product(part), cancelling equal symbols; unknown when a symbol is left below.
SymInt quotient(std::span<const Dim> total, std::span<const Dim> part);

/// Dimensions of the result of a NumPy-style broadcast; throws Error(BadModel) when they clash.
Dims broadcast(const Dims& a, const Dims& b);
/// What two views of one dimension tell together: numbers win, equal symbols stay. Nothing: a
/// clash.
std::optional<Dim> unify(const Dim& a, const Dim& b);
/// What holds whichever of the two is the case: equal dimensions stay, others are unknown.
Dim either(const Dim& a, const Dim& b);

}  // namespace quench::ops
