// SPDX-License-Identifier: Apache-2.0
// Numbers and bits in the byte strings of packed files.
#include "formats/packed/bytes.h"

#include <bit>

#include "base/format.h"

namespace quench::packed {

void fail_damaged(std::string_view what) {
  fail(ErrorKind::BadModel, "the packed file is damaged: {}; get it again", what);
}

void ByteWriter::varint(std::uint64_t value) {
  while (value >= 0x80) {
    u8(static_cast<std::uint8_t>(value | 0x80));
    value >>= 7;
  }
  u8(static_cast<std::uint8_t>(value));
}

void ByteWriter::fixed(std::uint64_t value, int size) {
  for (int i = 0; i < size; ++i) u8(static_cast<std::uint8_t>(value >> (8 * i)));
}

std::uint64_t ByteReader::varint() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const std::uint64_t byte = fixed(1);
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  fail_damaged("a number in it does not end");
}

std::uint64_t ByteReader::varint(std::uint64_t most, std::string_view what) {
  const std::uint64_t value = varint();
  if (value > most) fail_damaged(format("{} is {}, more than {}", what, value, most));
  return value;
}

Bytes ByteReader::bytes(std::uint64_t size) {
  if (size > rest_.size()) {
    fail_damaged(format("{} bytes are announced where {} are left", size, rest_.size()));
  }
  const Bytes result = rest_.first(static_cast<std::size_t>(size));
  rest_ = rest_.subspan(result.size());
  return result;
}

std::uint64_t ByteReader::fixed(int size) {
  std::uint64_t value = 0;
  int shift = 0;
  for (const std::byte byte : bytes(static_cast<std::uint64_t>(size))) {
    value |= std::to_integer<std::uint64_t>(byte) << shift;
    shift += 8;
  }
  return value;
}

void BitReader::refill() {
  if (rest_.empty()) fail_damaged("a tensor's bits end too early");
  while (count_ <= 56 && !rest_.empty()) {
    held_ |= std::to_integer<std::uint64_t>(rest_[0]) << count_;
    count_ += 8;
    rest_ = rest_.subspan(1);
  }
}

std::uint64_t bit_bytes(std::uint64_t count, int bits) {
  // Split so that no count of elements that fits in memory overflows.
  const auto width = static_cast<std::uint64_t>(bits);
  return count / 8 * width + (count % 8 * width + 7) / 8;
}

int bits_below(std::uint64_t limit) noexcept {
  return limit <= 1 ? 0 : static_cast<int>(std::bit_width(limit - 1));
}

}  // namespace quench::packed
