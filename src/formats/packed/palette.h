// SPDX-License-Identifier: Apache-2.0
// The distinct symbols of a stream, in ascending order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formats/packed/coding.h"

namespace quench::packed {

class Palette {
 public:
  /// The symbols whose count is not zero.
  static Palette of(std::span<const std::uint64_t> histogram);
  static Palette read(ByteReader& in, int symbol_bits);
  /// The number of symbols, the first, and the distance from each to the next.
  void write(ByteWriter& out) const;

  std::size_t count() const noexcept { return symbols_.size(); }
  /// Bits of an index.
  int bits() const noexcept { return bits_; }
  std::uint32_t index(Symbol symbol) const noexcept { return places_[symbol]; }
  /// Throws Error(BadModel) where the index is none.
  Symbol symbol(std::uint32_t index) const {
    if (index >= symbols_.size()) fail_damaged("an index lies outside its palette");
    return symbols_[index];
  }

 private:
  Palette(std::vector<Symbol> symbols, std::size_t limit);

  std::vector<Symbol> symbols_;
  std::vector<std::uint16_t> places_;  ///< by symbol
  int bits_ = 0;
};

}  // namespace quench::packed
