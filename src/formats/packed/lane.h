// SPDX-License-Identifier: Apache-2.0
// A tensor's bytes seen as small unsigned numbers, which is what the codings store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/packed/bytes.h"
#include "quench/tensor.h"

namespace quench::packed {

using Symbol = std::uint16_t;

/// Where the symbols of one stream lie: elements of up to 16 bits, or one byte of each element.
struct Lane {
  int bits = 8;         ///< of a symbol: 2, 4, 8 or 16
  int width = 1;        ///< bytes of an element where the lane is one of several: 2, 4 or 8
  int plane = 0;        ///< which of its bytes
  bool flip = false;    ///< signed numbers: the sign bit is turned, so that order is kept
  bool rotate = false;  ///< floats: the sign is moved behind, so that a byte holds the exponent
};

/// The lanes of a tensor, all of one kind.
struct Layout {
  int bits = 8;
  int width = 1;
  bool flip = false;
  bool rotate = false;
};

Layout layout_of(DType dtype) noexcept;
std::vector<Lane> lanes_of(const Layout& layout);
/// Symbols in each lane of a tensor of `size` bytes; the size is a multiple of the width.
std::uint64_t num_symbols(const Layout& layout, std::uint64_t size) noexcept;

/// Reads symbols [begin, begin + out.size()) of a lane.
void load(Bytes tensor, const Lane& lane, std::uint64_t begin, std::span<Symbol> out);
/// Writes them; `begin` is a multiple of 8. Rotated lanes need `finish` once all are written.
void store(std::span<std::byte> tensor, const Lane& lane, std::uint64_t begin,
           std::span<const Symbol> symbols);
void finish(std::span<std::byte> tensor, const Layout& layout);

}  // namespace quench::packed
