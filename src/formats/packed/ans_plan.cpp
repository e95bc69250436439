// SPDX-License-Identifier: Apache-2.0
// Chooses classes, tables and plain bits for the entropy coder.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <optional>

#include "formats/packed/ans.h"

namespace quench::packed {
namespace {

using Counts = std::vector<std::uint64_t>;

/// About what a table takes for each symbol between its first and last.
constexpr double kTableBits = 4.5;

/// Streams that keep a larger part of their bits are noise: the low bytes of floats.
constexpr double kNoise = 0.999;

/// Calls `visit(begin, symbols)` for all blocks of a stream.
template <typename Visit>
void for_each_block(const Survey& survey, const Visit& visit) {
  std::vector<Symbol> block(static_cast<std::size_t>(std::min(survey.info.count, kChunk)));
  for (std::uint64_t at = 0; at < survey.info.count; at += block.size()) {
    const auto left = std::min<std::uint64_t>(survey.info.count - at, block.size());
    const auto part = std::span(block).first(static_cast<std::size_t>(left));
    load(survey.tensor, survey.lane, at, part);
    visit(at, part);
  }
}

/// The ways to cut a stream into rows: along the first dimension and along the last.
std::vector<Rows> candidate_rows(const Survey& survey) {
  std::vector<Rows> all;
  const Shape& shape = survey.shape;
  const auto count = survey.info.count;
  if (shape.size() < 2 || count < 1024) return all;
  const auto first = static_cast<std::uint64_t>(shape.front());
  const auto last = static_cast<std::uint64_t>(shape.back());
  if (first > 1 && count % first == 0) {
    const std::uint64_t joined = (first + kMaxRows - 1) / kMaxRows;
    all.push_back({.inner = count / first * joined,
                   .classes = std::vector<std::uint8_t>((first + joined - 1) / joined)});
  }
  if (last > 1 && last <= kMaxRows && count % last == 0) {
    all.push_back({.inner = 1, .classes = std::vector<std::uint8_t>(last)});
  }
  return all;
}

/// The sum of the distances from the most frequent symbol, by row.
Counts spreads(const Survey& survey, const Rows& rows) {
  Counts sums(rows.classes.size(), 0);
  const int centre = survey.common;
  for_each_block(survey, [&](std::uint64_t begin, std::span<const Symbol> symbols) {
    std::uint64_t row = begin / rows.inner % sums.size();
    std::uint64_t left = rows.inner - begin % rows.inner;
    for (const Symbol symbol : symbols) {
      sums[row] += static_cast<std::uint64_t>(std::abs(symbol - centre));
      if (--left != 0) continue;
      left = rows.inner;
      row = row + 1 == sums.size() ? 0 : row + 1;
    }
  });
  return sums;
}

/// Gives rows of like spread a class; rows of the common symbol alone have the first to themselves.
void classify(const Counts& sums, Rows& rows) {
  std::vector<std::size_t> order(sums.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    return sums[a] != sums[b] ? sums[a] < sums[b] : a < b;
  });
  const auto zeros = static_cast<std::size_t>(std::ranges::count(sums, std::uint64_t{0}));
  const std::size_t others = order.size() - zeros;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t fine = i < zeros ? 0 : 1 + (i - zeros) * (kMaxClasses - 1) / others;
    rows.classes[order[i]] = static_cast<std::uint8_t>(fine);
  }
}

/// Counts by class; symbols lose their base and `shift` low bits.
std::vector<Counts> count_classes(const Survey& survey, const Rows& rows, int shift) {
  std::vector<Counts> counts(kMaxClasses, Counts(kAlphabet, 0));
  std::vector<std::uint8_t> classes;
  for_each_block(survey, [&](std::uint64_t begin, std::span<const Symbol> symbols) {
    classes.resize(symbols.size());
    rows.fill(begin, classes);
    for (std::size_t i = 0; i < symbols.size(); ++i) {
      ++counts[classes[i]][static_cast<std::size_t>((symbols[i] - survey.low) >> shift)];
    }
  });
  return counts;
}

/// Bits of a class with these counts, its table included; nothing for an empty class.
double class_bits(const Counts& counts) {
  double sum = 0;
  double bits = 0;
  std::size_t low = kAlphabet;
  std::size_t high = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    const auto count = static_cast<double>(counts[i]);
    sum += count;
    bits -= count * std::log2(count);
    low = std::min(low, i);
    high = i;
  }
  if (sum == 0) return 0;
  return bits + sum * std::log2(sum) + 16 + kTableBits * static_cast<double>(high - low + 1);
}

Counts added(const Counts& a, const Counts& b) {
  Counts sum = a;
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += b[i];
  return sum;
}

/// Classes after joining neighbours as long as that saves bits.
struct Joined {
  std::vector<Counts> counts;
  std::vector<double> bits;
  std::array<std::uint8_t, kMaxClasses> place{};  ///< from the fine class to the joined one
  double total = 0;
};

std::size_t best_join(const Joined& joined, double& gain) {
  std::size_t best = joined.counts.size();
  for (std::size_t i = 0; i + 1 < joined.counts.size(); ++i) {
    const double apart = joined.bits[i] + joined.bits[i + 1];
    const double saved = apart - class_bits(added(joined.counts[i], joined.counts[i + 1]));
    if (saved < gain) continue;
    gain = saved;
    best = i;
  }
  return best;
}

Joined join(std::vector<Counts> counts) {
  Joined joined;
  joined.counts = std::move(counts);
  for (const Counts& each : joined.counts) joined.bits.push_back(class_bits(each));
  std::iota(joined.place.begin(), joined.place.end(), std::uint8_t{0});
  while (joined.counts.size() > 1) {
    double gain = 0;
    const std::size_t at = best_join(joined, gain);
    if (at == joined.counts.size()) break;
    joined.counts[at] = added(joined.counts[at], joined.counts[at + 1]);
    joined.bits[at] = class_bits(joined.counts[at]);
    joined.counts.erase(joined.counts.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    joined.bits.erase(joined.bits.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    for (std::uint8_t& place : joined.place) {
      if (place > at) --place;
    }
  }
  joined.total = std::accumulate(joined.bits.begin(), joined.bits.end(), 0.0);
  return joined;
}

Counts halved(const Counts& counts) {
  Counts result(counts.size(), 0);
  for (std::size_t i = 0; i < counts.size(); ++i) result[i / 2] += counts[i];
  return result;
}

/// A model that may be chosen, with about the bits it takes.
struct Choice {
  double bits = 0;
  int shift = 0;
  Rows rows;
  std::vector<Counts> counts;
};

/// The best number of plain bits and of classes for one way to cut rows.
void try_rows(const Survey& survey, Rows rows, int first_shift, std::optional<Choice>& best) {
  if (rows.classes.size() > 1) classify(spreads(survey, rows), rows);
  std::vector<Counts> counts = count_classes(survey, rows, first_shift);
  const int width = bits_below(std::uint64_t{survey.high} - survey.low + 1);
  for (int shift = first_shift; shift < std::max(width, first_shift + 1); ++shift) {
    Joined joined = join(counts);
    double bits = joined.total + static_cast<double>(survey.info.count) * shift;
    bits += bits_below(joined.counts.size()) * static_cast<double>(rows.classes.size());
    if (!best || bits < best->bits) {
      best = Choice{bits, shift, rows, std::move(joined.counts)};
      for (std::uint8_t& each : best->rows.classes) each = joined.place[each];
    } else if (bits > best->bits * 1.05) {
      break;  // storing still more bits plainly only gets worse
    }
    for (Counts& each : counts) each = halved(each);
  }
}

/// Tables of the scale that takes fewest bits in all.
std::vector<AnsTable> make_tables(const std::vector<Counts>& counts, double& best_bits) {
  std::vector<AnsTable> best;
  for (int scale_bits = kMinScaleBits + 1; scale_bits <= kMaxScaleBits; ++scale_bits) {
    std::vector<AnsTable> tables;
    double bits = 0;
    for (const Counts& each : counts) {
      tables.push_back(AnsTable::of(each, scale_bits));
      bits += tables.back().cost(each) + static_cast<double>(tables.back().bits());
    }
    if (!best.empty() && bits >= best_bits) break;
    best = std::move(tables);
    best_bits = bits;
  }
  return best;
}

}  // namespace

std::unique_ptr<Coder> plan_ans(const Survey& survey) {
  if (survey.distinct < 2) return nullptr;
  const int width = bits_below(std::uint64_t{survey.high} - survey.low + 1);
  const int first_shift = std::max(0, width - 8);
  std::optional<Choice> best;
  try_rows(survey, Rows{}, first_shift, best);
  if (best->bits > kNoise * width * static_cast<double>(survey.info.count)) return nullptr;
  for (Rows& rows : candidate_rows(survey)) try_rows(survey, std::move(rows), first_shift, best);
  double bits = 0;
  AnsModel model{.base = survey.low, .shift = best->shift, .rows = std::move(best->rows)};
  model.tables = make_tables(best->counts, bits);
  if (model.tables.size() == 1) model.rows = Rows{};
  bits += static_cast<double>(survey.info.count) * model.shift;
  bits += bits_below(model.tables.size()) * static_cast<double>(model.rows.classes.size());
  const std::uint64_t chunks = (survey.info.count + kChunk - 1) / kChunk;
  const auto size = static_cast<std::uint64_t>(bits / 8) + 20 * chunks + 12;
  return std::make_unique<Ans>(survey.info, std::move(model), size);
}

}  // namespace quench::packed
