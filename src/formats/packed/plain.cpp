// SPDX-License-Identifier: Apache-2.0
// Plain storage: each symbol in as few bits as the largest one takes.
#include <algorithm>

#include "formats/packed/coding.h"

namespace quench::packed {
namespace {

class Plain final : public Coder {
 public:
  Plain(const StreamInfo& stream, Symbol base, int bits)
      : stream_(stream), base_(base), bits_(bits) {}

  std::string params() const override {
    ByteWriter out;
    out.varint(base_);
    out.u8(static_cast<std::uint8_t>(bits_));
    return out.take();
  }

  std::uint64_t size() const override { return bit_bytes(stream_.count, bits_) + 3; }

  std::string encode(std::span<const Symbol> symbols, std::uint64_t /*begin*/) const override {
    BitWriter out;
    out.reserve(bit_bytes(symbols.size(), bits_));
    for (const Symbol symbol : symbols) out.put(static_cast<std::uint32_t>(symbol - base_), bits_);
    return out.take();
  }

  void decode(Bytes chunk, std::uint64_t /*begin*/, std::span<Symbol> symbols) const override {
    if (chunk.size() != bit_bytes(symbols.size(), bits_)) fail_damaged("a chunk has a wrong size");
    const auto limit = std::uint32_t{1} << stream_.bits;
    BitReader in(chunk);
    for (Symbol& symbol : symbols) {
      const std::uint32_t value = base_ + in.get(bits_);
      if (value >= limit) fail_damaged("a value is out of range");
      symbol = static_cast<Symbol>(value);
    }
  }

 private:
  StreamInfo stream_;
  Symbol base_;
  int bits_;
};

std::unique_ptr<Coder> plan(const Survey& survey) {
  // At least one, so that plain storage never grows beyond what a reader believes of its size.
  const int bits = std::max(1, bits_below(std::uint64_t{survey.high} - survey.low + 1));
  // A whole width needs no base: the bytes are the tensor's own.
  const Symbol base = bits == survey.info.bits ? Symbol{0} : survey.low;
  return std::make_unique<Plain>(survey.info, base, bits);
}

std::unique_ptr<Coder> read(ByteReader& params, const StreamInfo& stream) {
  const auto base = params.varint((std::uint64_t{1} << stream.bits) - 1, "a base");
  const int bits = params.u8();
  if (bits > stream.bits) fail_damaged("a symbol has too many bits");
  return std::make_unique<Plain>(stream, static_cast<Symbol>(base), bits);
}

}  // namespace

CodingInfo plain_coding() { return {.name = "plain", .plan = plan, .read = read}; }

}  // namespace quench::packed
