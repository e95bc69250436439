// SPDX-License-Identifier: Apache-2.0
// Ways to store a stream of symbols. A new one is a file and a line in codings.inc.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/packed/lane.h"

namespace quench::packed {

/// Symbols in a chunk; each chunk can be decoded alone. A multiple of 8, so that chunks of any
/// width end on whole bytes.
inline constexpr std::uint64_t kChunk = std::uint64_t{1} << 18;

/// What a coding is told of a stream when a file is read.
struct StreamInfo {
  std::uint64_t count = 0;
  int bits = 8;
};

/// What it is told when a file is written.
struct Survey {
  StreamInfo info;
  Bytes tensor;
  Lane lane;
  Shape shape;                           ///< of the tensor
  std::vector<std::uint64_t> histogram;  ///< by symbol
  Symbol low = 0;
  Symbol high = 0;
  Symbol common = 0;  ///< the most frequent symbol
  std::uint64_t distinct = 0;
  std::uint64_t best = 0;  ///< bytes of the best coding so far
};
Survey survey(Bytes tensor, const Lane& lane, std::uint64_t count, const Shape& shape);

/// One stream's coding, ready for both directions.
class Coder {
 public:
  Coder() = default;
  Coder(const Coder&) = delete;
  Coder& operator=(const Coder&) = delete;
  virtual ~Coder() = default;

  /// What the reader needs to make this coder again.
  virtual std::string params() const = 0;
  /// About how many bytes parameters and chunks take together.
  virtual std::uint64_t size() const = 0;
  /// Whether the stream is one chunk, however long it is.
  virtual bool in_one_chunk() const { return false; }
  /// A chunk of symbols, of which the first is number `begin` of the stream.
  virtual std::string encode(std::span<const Symbol> symbols, std::uint64_t begin) const = 0;
  /// The reverse; fills `symbols` or throws Error(BadModel). Any bytes may come.
  virtual void decode(Bytes chunk, std::uint64_t begin, std::span<Symbol> symbols) const = 0;
};

/// A row of the table of codings.
struct CodingInfo {
  std::string_view name;
  /// Null where the coding cannot be smaller than `survey.best`.
  std::unique_ptr<Coder> (*plan)(const Survey& survey);
  std::unique_ptr<Coder> (*read)(ByteReader& params, const StreamInfo& stream);
};

#define QUENCH_CODING(name) CodingInfo name##_coding();
#include "formats/packed/codings.inc"
#undef QUENCH_CODING

/// Every coding, in the order of their numbers in files.
std::span<const CodingInfo> all_codings();

}  // namespace quench::packed
