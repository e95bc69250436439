// SPDX-License-Identifier: Apache-2.0
// Few distinct symbols: a palette of them, and for each symbol its place in the palette.
#include <algorithm>

#include "formats/packed/palette.h"

namespace quench::packed {
namespace {

class Indexed final : public Coder {
 public:
  Indexed(const StreamInfo& stream, Palette palette)
      : stream_(stream), palette_(std::move(palette)) {}

  std::string params() const override {
    ByteWriter out;
    palette_.write(out);
    return out.take();
  }

  std::uint64_t size() const override {
    return bit_bytes(stream_.count, palette_.bits()) + params().size();
  }

  std::string encode(std::span<const Symbol> symbols, std::uint64_t /*begin*/) const override {
    BitWriter out;
    out.reserve(bit_bytes(symbols.size(), palette_.bits()));
    for (const Symbol symbol : symbols) out.put(palette_.index(symbol), palette_.bits());
    return out.take();
  }

  void decode(Bytes chunk, std::uint64_t /*begin*/, std::span<Symbol> symbols) const override {
    if (chunk.size() != bit_bytes(symbols.size(), palette_.bits())) {
      fail_damaged("a chunk has a wrong size");
    }
    BitReader in(chunk);
    for (Symbol& symbol : symbols) symbol = palette_.symbol(in.get(palette_.bits()));
  }

 private:
  StreamInfo stream_;
  Palette palette_;
};

std::unique_ptr<Coder> plan(const Survey& survey) {
  return std::make_unique<Indexed>(survey.info, Palette::of(survey.histogram));
}

std::unique_ptr<Coder> read(ByteReader& params, const StreamInfo& stream) {
  return std::make_unique<Indexed>(stream, Palette::read(params, stream.bits));
}

}  // namespace

CodingInfo indexed_coding() { return {.name = "indexed", .plan = plan, .read = read}; }

}  // namespace quench::packed
