// SPDX-License-Identifier: Apache-2.0
// Numbers and bits in the byte strings of packed files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace quench::packed {

using Bytes = std::span<const std::byte>;

inline Bytes view(std::string_view text) noexcept {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

/// Throws Error(BadModel): the file is damaged, and in what way.
[[noreturn]] void fail_damaged(std::string_view what);

/// Appends numbers, little-endian, to a string.
class ByteWriter {
 public:
  void u8(std::uint8_t value) { out_.push_back(static_cast<char>(value)); }
  void u32(std::uint32_t value) { fixed(value, 4); }
  void u64(std::uint64_t value) { fixed(value, 8); }
  /// Seven bits a byte, low ones first; the top bit says that more follow.
  void varint(std::uint64_t value);
  void bytes(Bytes bytes) {
    out_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  const std::string& text() const noexcept { return out_; }
  std::string take() noexcept { return std::move(out_); }

 private:
  void fixed(std::uint64_t value, int size);

  std::string out_;
};

/// Reads them back; throws Error(BadModel) where the bytes end too early.
class ByteReader {
 public:
  explicit ByteReader(Bytes bytes) : rest_(bytes) {}

  std::uint8_t u8() { return static_cast<std::uint8_t>(fixed(1)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(fixed(4)); }
  std::uint64_t u64() { return fixed(8); }
  std::uint64_t varint();
  /// A varint that must not exceed `most`; `what` names it in the error.
  std::uint64_t varint(std::uint64_t most, std::string_view what);
  Bytes bytes(std::uint64_t size);
  std::size_t left() const noexcept { return rest_.size(); }

 private:
  std::uint64_t fixed(int size);

  Bytes rest_;
};

/// Appends fields of 0 to 32 bits, low bits first.
class BitWriter {
 public:
  void put(std::uint32_t value, int bits) {
    held_ |= static_cast<std::uint64_t>(value) << count_;
    count_ += bits;
    while (count_ >= 8) {
      out_.push_back(static_cast<char>(held_ & 0xff));
      held_ >>= 8;
      count_ -= 8;
    }
  }
  /// The bytes so far, the last one filled up with zeros.
  std::string take() {
    if (count_ > 0) put(0, 8 - count_);
    return std::move(out_);
  }
  void reserve(std::size_t size) { out_.reserve(size); }

 private:
  std::string out_;
  std::uint64_t held_ = 0;
  int count_ = 0;
};

/// Reads them back; throws Error(BadModel) where the bytes end too early.
class BitReader {
 public:
  explicit BitReader(Bytes bytes) : rest_(bytes) {}

  std::uint32_t get(int bits) {
    while (count_ < bits) refill();
    const auto value = static_cast<std::uint32_t>(held_ & ((std::uint64_t{1} << bits) - 1));
    held_ >>= bits;
    count_ -= bits;
    return value;
  }
  /// The bytes that no bit has been read of.
  Bytes rest() const noexcept { return rest_; }

 private:
  void refill();

  Bytes rest_;
  std::uint64_t held_ = 0;
  int count_ = 0;
};

/// Bytes that `count` fields of `bits` bits take.
std::uint64_t bit_bytes(std::uint64_t count, int bits);
/// Bits that a number below `limit` takes; 0 for limits of 0 and 1.
int bits_below(std::uint64_t limit) noexcept;

}  // namespace quench::packed
