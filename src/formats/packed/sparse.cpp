// SPDX-License-Identifier: Apache-2.0
// Mostly one symbol: how many of it are skipped before each of the others, and which that is.
#include <algorithm>

#include "formats/packed/palette.h"

namespace quench::packed {
namespace {

/// Gaps that take more bits are split by entries that stand for the common symbol itself.
constexpr int kMaxGapBits = 10;

class Sparse final : public Coder {
 public:
  Sparse(const StreamInfo& stream, Symbol common, int gap_bits, Palette palette)
      : stream_(stream), common_(common), gap_bits_(gap_bits), palette_(std::move(palette)) {}

  std::string params() const override {
    ByteWriter out;
    out.varint(common_);
    out.u8(static_cast<std::uint8_t>(gap_bits_));
    palette_.write(out);
    return out.take();
  }

  std::uint64_t size() const override { return size_; }
  void set_size(std::uint64_t size) noexcept { size_ = size; }

  std::string encode(std::span<const Symbol> symbols, std::uint64_t /*begin*/) const override {
    const std::uint32_t longest = (std::uint32_t{1} << gap_bits_) - 1;
    BitWriter out;
    std::uint32_t entries = 0;
    std::uint32_t gap = 0;
    for (const Symbol symbol : symbols) {
      if (symbol == common_ && gap < longest) {
        ++gap;
        continue;
      }
      out.put(gap, gap_bits_);
      out.put(palette_.index(symbol), palette_.bits());
      gap = 0;
      ++entries;
    }
    ByteWriter chunk;
    chunk.varint(entries);
    chunk.bytes(view(out.take()));
    return chunk.take();
  }

  void decode(Bytes chunk, std::uint64_t /*begin*/, std::span<Symbol> symbols) const override {
    ByteReader head(chunk);
    const std::uint64_t entries = head.varint(symbols.size(), "the number of entries");
    BitReader in(head.bytes(head.left()));
    std::ranges::fill(symbols, common_);
    std::size_t at = 0;
    for (std::uint64_t i = 0; i < entries; ++i) {
      at += in.get(gap_bits_);
      const Symbol symbol = palette_.symbol(in.get(palette_.bits()));
      if (at >= symbols.size()) fail_damaged("an entry lies behind the end of its chunk");
      symbols[at++] = symbol;
    }
    if (!in.rest().empty()) fail_damaged("a chunk has a wrong size");
  }

 private:
  StreamInfo stream_;
  Symbol common_;
  int gap_bits_;
  Palette palette_;
  std::uint64_t size_ = 0;
};

/// How often each gap length occurs between symbols that are not the common one.
std::vector<std::uint64_t> count_gaps(const Survey& survey) {
  std::vector<std::uint64_t> gaps(std::size_t{1} << kMaxGapBits, 0);
  std::vector<Symbol> block(static_cast<std::size_t>(std::min(survey.info.count, kChunk)));
  std::size_t gap = 0;
  for (std::uint64_t at = 0; at < survey.info.count; at += block.size()) {
    const auto part = std::span(block).first(
        static_cast<std::size_t>(std::min<std::uint64_t>(survey.info.count - at, kChunk)));
    load(survey.tensor, survey.lane, at, part);
    for (const Symbol symbol : part) {
      if (symbol == survey.common && gap + 1 < gaps.size()) {
        ++gap;
        continue;
      }
      ++gaps[gap];
      gap = 0;
    }
  }
  return gaps;
}

/// Entries that gaps of up to `bits` bits need.
std::uint64_t count_entries(std::span<const std::uint64_t> gaps, int bits) {
  std::uint64_t entries = 0;
  for (std::size_t gap = 0; gap < gaps.size(); ++gap) entries += gaps[gap] * ((gap >> bits) + 1);
  return entries;
}

std::unique_ptr<Coder> plan(const Survey& survey) {
  const std::uint64_t others = survey.info.count - survey.histogram[survey.common];
  const int index_bits = bits_below(survey.distinct);
  // Each of the others takes an index and a gap of at least one bit.
  if (bit_bytes(others, index_bits + 1) >= survey.best) return nullptr;
  const auto gaps = count_gaps(survey);
  int best_bits = 1;
  std::uint64_t best = UINT64_MAX;
  for (int bits = 1; bits <= kMaxGapBits; ++bits) {
    const std::uint64_t size = bit_bytes(count_entries(gaps, bits), index_bits + bits);
    if (size < best) best_bits = bits;
    best = std::min(best, size);
  }
  auto coder = std::make_unique<Sparse>(survey.info, survey.common, best_bits,
                                        Palette::of(survey.histogram));
  const std::uint64_t chunks = (survey.info.count + kChunk - 1) / kChunk;
  coder->set_size(best + coder->params().size() + 4 * chunks);
  return coder;
}

std::unique_ptr<Coder> read(ByteReader& params, const StreamInfo& stream) {
  const auto common = params.varint((std::uint64_t{1} << stream.bits) - 1, "a symbol");
  const int gap_bits = params.u8();
  if (gap_bits < 1 || gap_bits > kMaxGapBits) fail_damaged("a gap has a wrong number of bits");
  return std::make_unique<Sparse>(stream, static_cast<Symbol>(common), gap_bits,
                                  Palette::read(params, stream.bits));
}

}  // namespace

CodingInfo sparse_coding() { return {.name = "sparse", .plan = plan, .read = read}; }

}  // namespace quench::packed
