// SPDX-License-Identifier: Apache-2.0
// zstd, for symbols that repeat in longer patterns.
#include <zstd.h>

#include <algorithm>
#include <cstring>

#include "base/format.h"
#include "formats/packed/coding.h"
#include "formats/packed/compress.h"

namespace quench::packed {
namespace {

constexpr int kProbeLevel = 3;
constexpr int kLevel = 19;

/// Symbols as the bytes that zstd sees; a block at a time, as tensors may be large.
std::string to_bytes(const Survey& survey) {
  const std::size_t width = survey.info.bits > 8 ? 2 : 1;
  std::string bytes(static_cast<std::size_t>(survey.info.count) * width, '\0');
  std::vector<Symbol> block(static_cast<std::size_t>(std::min(survey.info.count, kChunk)));
  char* out = bytes.data();
  for (std::uint64_t at = 0; at < survey.info.count; at += block.size()) {
    const auto part = std::span(block).first(
        static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), survey.info.count - at)));
    load(survey.tensor, survey.lane, at, part);
    for (const Symbol symbol : part) {
      std::memcpy(out, &symbol, width);  // the low byte comes first
      out += width;
    }
  }
  return bytes;
}

/// Whether a lane is the tensor's bytes as they are.
bool is_plain(const Lane& lane) {
  return lane.bits == 8 && lane.width == 1 && !lane.flip && !lane.rotate;
}

class Zstd final : public Coder {
 public:
  Zstd(const StreamInfo& stream, std::string packed)
      : stream_(stream), packed_(std::move(packed)) {}

  std::string params() const override { return {}; }
  std::uint64_t size() const override { return packed_.size(); }
  bool in_one_chunk() const override { return true; }

  std::string encode(std::span<const Symbol> /*symbols*/, std::uint64_t /*begin*/) const override {
    return packed_;
  }

  void decode(Bytes chunk, std::uint64_t /*begin*/, std::span<Symbol> symbols) const override {
    const std::size_t width = stream_.bits > 8 ? 2 : 1;
    const std::string bytes = zstd_decompress(chunk, symbols.size() * width);
    const auto limit = std::uint32_t{1} << stream_.bits;
    for (std::size_t i = 0; i < symbols.size(); ++i) {
      std::uint32_t value = static_cast<std::uint8_t>(bytes[i * width]);
      if (width == 2) value |= std::uint32_t{static_cast<std::uint8_t>(bytes[2 * i + 1])} << 8;
      if (value >= limit) fail_damaged("a value is out of range");
      symbols[i] = static_cast<Symbol>(value);
    }
  }

 private:
  StreamInfo stream_;
  std::string packed_;
};

/// A quick try says whether a slow one can win; entropy coding is ahead for all but repetitive
/// data.
std::unique_ptr<Coder> plan(const Survey& survey) {
  const std::string bytes = is_plain(survey.lane) ? std::string() : to_bytes(survey);
  const Bytes all = is_plain(survey.lane) ? survey.tensor : view(bytes);
  const std::size_t probe = zstd_compress(all, kProbeLevel).size();
  const bool noise = probe >= all.size() - all.size() / 200;
  if (noise || probe > survey.best + survey.best / 100) return nullptr;
  return std::make_unique<Zstd>(survey.info, zstd_compress(all, kLevel));
}

std::unique_ptr<Coder> read(ByteReader& /*params*/, const StreamInfo& stream) {
  return std::make_unique<Zstd>(stream, std::string());
}

}  // namespace

std::string zstd_compress(Bytes bytes, int level) {
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  const std::size_t size = ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), level);
  if (ZSTD_isError(size) != 0) {
    fail(ErrorKind::Internal, "zstd cannot compress: {}", ZSTD_getErrorName(size));
  }
  out.resize(size);
  out.shrink_to_fit();
  return out;
}

std::string zstd_decompress(Bytes bytes, std::uint64_t size) {
  std::string out(static_cast<std::size_t>(size), '\0');
  const std::size_t done = ZSTD_decompress(out.data(), out.size(), bytes.data(), bytes.size());
  if (ZSTD_isError(done) != 0 || done != size) fail_damaged("a compressed part is not valid");
  return out;
}

CodingInfo zstd_coding() { return {.name = "zstd", .plan = plan, .read = read}; }

}  // namespace quench::packed
