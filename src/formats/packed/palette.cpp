// SPDX-License-Identifier: Apache-2.0
// The distinct symbols of a stream.
#include "formats/packed/palette.h"

namespace quench::packed {

Palette::Palette(std::vector<Symbol> symbols, std::size_t limit)
    : symbols_(std::move(symbols)), places_(limit), bits_(bits_below(symbols_.size())) {
  for (std::size_t i = 0; i < symbols_.size(); ++i) {
    places_[symbols_[i]] = static_cast<std::uint16_t>(i);
  }
}

Palette Palette::of(std::span<const std::uint64_t> histogram) {
  std::vector<Symbol> symbols;
  for (std::size_t i = 0; i < histogram.size(); ++i) {
    if (histogram[i] != 0) symbols.push_back(static_cast<Symbol>(i));
  }
  return {std::move(symbols), histogram.size()};
}

Palette Palette::read(ByteReader& in, int symbol_bits) {
  const std::uint64_t limit = std::uint64_t{1} << symbol_bits;
  const auto count = in.varint(limit, "the size of a palette");
  std::vector<Symbol> symbols;
  std::uint64_t next = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    next += in.varint(limit, "a step of a palette") + (i == 0 ? 0 : 1);
    if (next >= limit) fail_damaged("a palette holds a value that is too large");
    symbols.push_back(static_cast<Symbol>(next));
  }
  return {std::move(symbols), static_cast<std::size_t>(limit)};
}

void Palette::write(ByteWriter& out) const {
  out.varint(symbols_.size());
  for (std::size_t i = 0; i < symbols_.size(); ++i) {
    const int step = i == 0 ? symbols_[0] : symbols_[i] - symbols_[i - 1] - 1;
    out.varint(static_cast<std::uint64_t>(step));
  }
}

}  // namespace quench::packed
