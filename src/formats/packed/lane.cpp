// SPDX-License-Identifier: Apache-2.0
// A tensor's bytes seen as small unsigned numbers.
#include "formats/packed/lane.h"

#include <bit>
#include <cstring>

namespace quench::packed {
namespace {

template <typename T>
T word_at(const std::byte* at) {
  T word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

void load_small(const std::byte* bytes, const Lane& lane, std::uint64_t begin,
                std::span<Symbol> out) {
  const int per_byte = 8 / lane.bits;
  const unsigned mask = (1U << lane.bits) - 1;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint64_t at = begin + i;
    const auto byte = std::to_integer<unsigned>(bytes[at / static_cast<unsigned>(per_byte)]);
    const auto shift = static_cast<int>(at % static_cast<unsigned>(per_byte)) * lane.bits;
    out[i] = static_cast<Symbol>((byte >> shift) & mask);
  }
}

void store_small(std::byte* bytes, const Lane& lane, std::uint64_t begin,
                 std::span<const Symbol> symbols, unsigned flip) {
  const int per_byte = 8 / lane.bits;
  std::byte* out = bytes + begin / static_cast<unsigned>(per_byte);
  std::size_t i = 0;
  while (i < symbols.size()) {
    unsigned byte = 0;
    for (int k = 0; k < per_byte && i < symbols.size(); ++k, ++i) {
      byte |= (symbols[i] ^ flip) << (k * lane.bits);
    }
    *out++ = static_cast<std::byte>(byte);
  }
}

template <typename T>
void load_plane(const std::byte* bytes, const Lane& lane, std::uint64_t begin,
                std::span<Symbol> out) {
  const std::byte* at = bytes + begin * sizeof(T);
  const int shift = 8 * lane.plane;
  for (Symbol& each : out) {
    T word = word_at<T>(at);
    if (lane.rotate) word = std::rotl(word, 1);
    each = static_cast<Symbol>((word >> shift) & 0xff);
    at += sizeof(T);
  }
}

template <typename T>
void rotate_back(std::span<std::byte> tensor) {
  for (std::size_t at = 0; at + sizeof(T) <= tensor.size(); at += sizeof(T)) {
    const T word = std::rotr(word_at<T>(tensor.data() + at), 1);
    std::memcpy(tensor.data() + at, &word, sizeof(word));
  }
}

}  // namespace

Layout layout_of(DType dtype) noexcept {
  const DTypeInfo& row = info(dtype);
  const bool is_complex = dtype == DType::Complex64 || dtype == DType::Complex128;
  const int bits = is_complex ? row.bits / 2 : row.bits;
  if (bits == 2 || bits == 4 || bits == 8 || (bits == 16 && !row.is_float)) {
    return {.bits = bits, .width = 1, .flip = row.is_signed && !row.is_float, .rotate = false};
  }
  if (bits == 16 || bits == 32 || bits == 64) {
    return {.bits = 8, .width = bits / 8, .flip = false, .rotate = row.is_float || is_complex};
  }
  return {};
}

std::vector<Lane> lanes_of(const Layout& layout) {
  std::vector<Lane> lanes;
  for (int plane = 0; plane < layout.width; ++plane) {
    lanes.push_back({.bits = layout.bits,
                     .width = layout.width,
                     .plane = plane,
                     .flip = layout.flip,
                     .rotate = layout.rotate});
  }
  return lanes;
}

std::uint64_t num_symbols(const Layout& layout, std::uint64_t size) noexcept {
  if (layout.width > 1) return size / static_cast<std::uint64_t>(layout.width);
  return layout.bits == 16 ? size / 2 : size * static_cast<std::uint64_t>(8 / layout.bits);
}

void load(Bytes tensor, const Lane& lane, std::uint64_t begin, std::span<Symbol> out) {
  const std::byte* bytes = tensor.data();
  if (lane.width == 2) return load_plane<std::uint16_t>(bytes, lane, begin, out);
  if (lane.width == 4) return load_plane<std::uint32_t>(bytes, lane, begin, out);
  if (lane.width == 8) return load_plane<std::uint64_t>(bytes, lane, begin, out);
  const unsigned flip = lane.flip ? 1U << (lane.bits - 1) : 0;
  if (lane.bits < 8) {
    load_small(bytes, lane, begin, out);
  } else if (lane.bits == 8) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = std::to_integer<Symbol>(bytes[begin + i]);
  } else {
    std::memcpy(out.data(), bytes + 2 * begin, out.size_bytes());
  }
  if (flip == 0) return;
  for (Symbol& each : out) each = static_cast<Symbol>(each ^ flip);
}

void store(std::span<std::byte> tensor, const Lane& lane, std::uint64_t begin,
           std::span<const Symbol> symbols) {
  const unsigned flip = lane.flip ? 1U << (lane.bits - 1) : 0;
  if (lane.bits < 8) return store_small(tensor.data(), lane, begin, symbols, flip);
  if (lane.bits == 8) {
    const auto width = static_cast<std::size_t>(lane.width);
    std::byte* out = tensor.data() + begin * width + static_cast<std::size_t>(lane.plane);
    for (std::size_t i = 0; i < symbols.size(); ++i) {
      out[i * width] = static_cast<std::byte>(symbols[i] ^ flip);
    }
    return;
  }
  std::byte* out = tensor.data() + begin * 2;
  for (const Symbol symbol : symbols) {
    const auto word = static_cast<std::uint16_t>(symbol ^ flip);
    std::memcpy(out, &word, sizeof(word));
    out += sizeof(word);
  }
}

void finish(std::span<std::byte> tensor, const Layout& layout) {
  if (!layout.rotate) return;
  if (layout.width == 2) rotate_back<std::uint16_t>(tensor);
  if (layout.width == 4) rotate_back<std::uint32_t>(tensor);
  if (layout.width == 8) rotate_back<std::uint64_t>(tensor);
}

}  // namespace quench::packed
