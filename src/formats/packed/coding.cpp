// SPDX-License-Identifier: Apache-2.0
// The table of codings, and what they are told of a stream.
#include "formats/packed/coding.h"

#include <algorithm>
#include <array>

namespace quench::packed {

std::span<const CodingInfo> all_codings() {
  static const auto codings = std::to_array<CodingInfo>({
#define QUENCH_CODING(name) name##_coding(),
#include "formats/packed/codings.inc"
#undef QUENCH_CODING
  });
  return codings;
}

Survey survey(Bytes tensor, const Lane& lane, std::uint64_t count, const Shape& shape) {
  Survey result;
  result.info = {.count = count, .bits = lane.bits};
  result.tensor = tensor;
  result.lane = lane;
  result.shape = shape;
  result.histogram.assign(std::size_t{1} << lane.bits, 0);
  std::vector<Symbol> block(static_cast<std::size_t>(std::min(count, kChunk)));
  for (std::uint64_t at = 0; at < count; at += block.size()) {
    const auto part =
        std::span(block).first(static_cast<std::size_t>(std::min(count - at, kChunk)));
    load(tensor, lane, at, part);
    for (const Symbol symbol : part) ++result.histogram[symbol];
  }
  bool first = true;
  for (std::size_t i = 0; i < result.histogram.size(); ++i) {
    if (result.histogram[i] == 0) continue;
    const auto symbol = static_cast<Symbol>(i);
    if (first) result.low = symbol;
    first = false;
    result.high = symbol;
    ++result.distinct;
    if (result.histogram[i] > result.histogram[result.common]) result.common = symbol;
  }
  return result;
}

}  // namespace quench::packed
