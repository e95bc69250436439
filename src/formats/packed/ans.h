// SPDX-License-Identifier: Apache-2.0
// Entropy coding by asymmetric numeral systems (Duda, arXiv 1311.2540), in the form that keeps a
// range (rANS). Symbols fall into classes by their row, so that channels of unlike spread have
// tables of their own; low bits that are as good as noise are stored plainly.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/packed/ans_table.h"
#include "formats/packed/coding.h"

namespace quench::packed {

inline constexpr std::size_t kMaxClasses = 16;
inline constexpr std::uint64_t kMaxRows = 1 << 16;

/// Which class each symbol of a stream belongs to: symbol i lies in row i / inner modulo rows.
struct Rows {
  std::uint64_t inner = 1;
  std::vector<std::uint8_t> classes = {0};  ///< by row

  void fill(std::uint64_t begin, std::span<std::uint8_t> out) const;
};

/// All that a reader must know to decode a stream.
struct AnsModel {
  Symbol base = 0;  ///< subtracted first
  int shift = 0;    ///< low bits stored plainly
  Rows rows;
  std::vector<AnsTable> tables;  ///< by class
};

class Ans final : public Coder {
 public:
  Ans(const StreamInfo& stream, AnsModel model, std::uint64_t size)
      : stream_(stream), model_(std::move(model)), size_(size) {}

  std::string params() const override;
  std::uint64_t size() const override { return size_; }
  std::string encode(std::span<const Symbol> symbols, std::uint64_t begin) const override;
  void decode(Bytes chunk, std::uint64_t begin, std::span<Symbol> symbols) const override;

 private:
  StreamInfo stream_;
  AnsModel model_;
  std::uint64_t size_;
};

/// The model with which a stream takes fewest bytes, or null.
std::unique_ptr<Coder> plan_ans(const Survey& survey);

}  // namespace quench::packed
