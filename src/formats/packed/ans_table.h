// SPDX-License-Identifier: Apache-2.0
// The frequencies of one class of symbols, scaled to a power of two, as the entropy coder uses
// them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formats/packed/bytes.h"

namespace quench::packed {

/// Symbols the entropy coder tells apart; further bits of a symbol are stored plainly.
inline constexpr std::size_t kAlphabet = 256;
inline constexpr int kMinScaleBits = 8;
inline constexpr int kMaxScaleBits = 14;

class AnsTable {
 public:
  struct Row {
    std::uint16_t frequency = 0;
    std::uint16_t start = 0;  ///< the sum of the frequencies before
  };

  /// Scales counts, of which one at least is not zero, to a sum of 2^scale_bits. Nothing is scaled
  /// to zero; the alphabet must fit.
  static AnsTable of(std::span<const std::uint64_t> counts, int scale_bits);
  static AnsTable read(BitReader& in, int scale_bits);
  void write(BitWriter& out) const;
  /// Bits that `write` takes.
  std::uint64_t bits() const;
  /// Bits that symbols with these counts take with this table.
  double cost(std::span<const std::uint64_t> counts) const;

  int scale_bits() const noexcept { return scale_bits_; }
  const Row& row(std::size_t symbol) const noexcept { return rows_[symbol]; }
  /// The symbol whose share of [0, 2^scale_bits) holds `slot`.
  std::uint8_t symbol_at(std::uint32_t slot) const noexcept { return slots_[slot]; }

 private:
  AnsTable(std::span<const std::uint32_t> frequencies, int scale_bits);

  int scale_bits_ = 0;
  std::vector<Row> rows_;
  std::vector<std::uint8_t> slots_;
};

}  // namespace quench::packed
